"""Models of others: OpenAI-compatible endpoints (HTTP client, chat protocol), and the Hugging Face hub."""
