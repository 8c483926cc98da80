"""Node classifiers, implementations of the Protocol `skillpager.types.Classifier`.

local   a small shipped model, offline, the default
llm     any OpenAI-compatible chat endpoint, extra `[openai]`
"""
