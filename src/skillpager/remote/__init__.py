"""OpenAI-compatible endpoints (HTTP client, chat protocol) and models of the Hugging Face hub."""
