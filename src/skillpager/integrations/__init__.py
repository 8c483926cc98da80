"""Adapters to agent frameworks: one module each, which needs the extra of its name.

langchain       retrievers                                     extra [langchain]
llama_index     retrievers                                     extra [llama-index]
haystack        retriever components, skill store              extra [haystack]
pydantic_ai     tools for an agent                             extra [pydantic-ai]
openai_agents   tools for an agent                             extra [openai-agents]
"""
