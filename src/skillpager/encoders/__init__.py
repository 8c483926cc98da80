"""Texts to unit rows: one module per encoder, so that choosing one loads no other's packages.

builtin                 BuiltinEncoder                the default; shipped weights
hashing                 HashingEncoder                deterministic, without weights; for tests
sentence_transformers   SentenceTransformersEncoder   any model of sentence-transformers
openai                  OpenAIEncoder                 any OpenAI-compatible endpoint
"""
