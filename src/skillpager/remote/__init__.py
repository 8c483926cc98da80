"""OpenAI-compatible endpoints: the HTTP client and the chat protocol."""
