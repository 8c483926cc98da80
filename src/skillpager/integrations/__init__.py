"""Adapters to agent frameworks: one module each, which needs the extra of its name.

langchain       retriever, document compressor                 pip install "skillpager[langchain]"
llama_index     retriever, node postprocessor, node parser     pip install "skillpager[llama-index]"
haystack        retriever component, skill store               pip install "skillpager[haystack]"
pydantic_ai     tools for an agent                             pip install "skillpager[pydantic-ai]"
openai_agents   tools for an agent                             pip install "skillpager[openai-agents]"
"""
