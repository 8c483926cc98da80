"""OpenAI-compatible endpoints: HTTP client and chat protocol."""
