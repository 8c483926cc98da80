package shop;

import javax.persistence.*;
import org.springframework.data.jpa.repository.Query;

public interface UserRepository extends JpaRepository<User, Long> {
    @Query("update from User u set u.active = false where u.id = :id")
    void lock(@Param("id") Long id);

    @Query("select distinct u from User u join fetch u.roles")
    List<User> withRoles();
}
