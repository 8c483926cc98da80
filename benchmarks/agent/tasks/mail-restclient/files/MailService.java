package shop;

import org.springframework.http.*;
import org.springframework.web.client.RestTemplate;

@Service
public class MailService {
    private final RestTemplate restTemplate;

    @Value("${mail.base-url}")
    private String baseUrl;

    public MailService() {
        this.restTemplate = new RestTemplate();
    }

    public boolean verify(String email) {
        try {
            String url = baseUrl + "/verify?email=" + email;
            ResponseEntity<Map> response = restTemplate.getForEntity(url, Map.class);
            return Boolean.TRUE.equals(response.getBody().get("valid"));
        } catch (Exception e) {
            return false;
        }
    }

    public void send(Map<String, String> payload) {
        HttpHeaders headers = new HttpHeaders();
        headers.setContentType(MediaType.APPLICATION_JSON);
        restTemplate.postForEntity(baseUrl + "/mails", new HttpEntity<>(payload, headers), Void.class);
    }

    public void remove(String id) {
        restTemplate.delete(baseUrl + "/mails/" + id);
    }
}
