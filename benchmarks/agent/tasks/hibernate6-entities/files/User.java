package shop;

import javax.persistence.*;
import org.hibernate.annotations.*;

@Entity
@TypeDef(name = "json", typeClass = JsonType.class)
public class User {
    @Id
    @GeneratedValue
    private Long id;

    @Type(type = "json")
    private JsonNode profile;
}
