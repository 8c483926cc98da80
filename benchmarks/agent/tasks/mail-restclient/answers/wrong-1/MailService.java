package shop;

import org.springframework.core.ParameterizedTypeReference;
import org.springframework.http.*;
import org.springframework.web.client.RestClient;

@Service
public class MailService {
    private final RestClient restClient;

    @Value("${mail.base-url}")
    private String baseUrl;

    public MailService() {
        this.restClient = RestClient.create();
    }

    public boolean verify(String email) {
        try {
            Map<String, Object> response = restClient.get()
                .uri(baseUrl + "/verify?email=" + email)
                .retrieve()
                .body(new ParameterizedTypeReference<Map<String, Object>>() {});
            return response != null && Boolean.TRUE.equals(response.get("valid"));
        } catch (Exception e) {
            return false;
        }
    }

    public void send(Map<String, String> payload) {
        restClient.post()
            .uri(baseUrl + "/mails")
            .contentType(MediaType.APPLICATION_JSON)
            .body(payload)
            .retrieve();
    }

    public void remove(String id) {
        restClient.delete()
            .uri(baseUrl + "/mails/{id}", id)
            .retrieve()
            .onStatus(HttpStatus::is4xxClientError, (request, response) -> {
                throw new MailNotFoundException(id);
            })
            .toBodilessEntity();
    }
}
