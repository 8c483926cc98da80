"""Adapters to agent frameworks: one module each, which needs the extra of its name.

langchain       retrievers                                     pip install "skillpager[langchain]"
llama_index     retrievers                                     pip install "skillpager[llama-index]"
haystack        retriever components, skill store              pip install "skillpager[haystack]"
pydantic_ai     tools for an agent                             pip install "skillpager[pydantic-ai]"
openai_agents   tools for an agent                             pip install "skillpager[openai-agents]"
"""
