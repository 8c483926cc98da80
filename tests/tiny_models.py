"""Real transformers models of a few thousand random weights, saved as the hub has them, for tests."""

from pathlib import Path
from typing import Any

_TEXT = (
    "restore the table from dump a database backup run make test when it fails check line of sample says what "
    "to do with section résumé and pg one two three nodes"
)
WORDS = _TEXT.split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WINDOW = 128


def save_tokenizer(folder: Path) -> Any:
    """Save a word tokenizer in BERT's form."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: place for place, word in enumerate([*SPECIAL, *dict.fromkeys(WORDS)])}
    fast = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fast.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=fast,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=WINDOW,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


def save_bert(folder: Path, kind: str, *, labels: int = 1) -> Path:
    """Save a tiny BERT with a head, such as `BertForTokenClassification`, and its tokenizer."""
    import torch
    import transformers

    torch.manual_seed(42)
    config = transformers.BertConfig(
        vocab_size=len(SPECIAL) + len(set(WORDS)),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=WINDOW,
        num_labels=labels,
        initializer_range=1.0,  # so that texts score differently
    )
    getattr(transformers, kind)(config).save_pretrained(folder)
    save_tokenizer(folder)
    return folder
