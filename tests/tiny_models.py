"""Real transformers models of a few thousand random weights, saved as the hub has them, for tests."""

import json
from pathlib import Path
from typing import Any

_TEXT = (
    "restore the table from dump a database backup run make test when it fails check line of sample says what "
    "to do with section résumé and pg one two three nodes"
)
WORDS = _TEXT.split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WINDOW = 128

# an OpenProvence model in the little that counts here: the signature of its `process`, how it treats sentences
# that are split beforehand, and the shape of its answer; what it keeps is decided by words in common
PROVENCE_CODE = """
import torch
from transformers import PretrainedConfig, PreTrainedModel


class TinyConfig(PretrainedConfig):
    model_type = "tiny_provence"


class TinyProvence(PreTrainedModel):
    config_class = TinyConfig

    def __init__(self, config):
        super().__init__(config)
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.post_init()

    def process(self, question, context, title="first_sentence", *, threshold=None, show_progress=True,
                return_sentence_metrics=False):
        assert isinstance(question, str) and title is None and not self.training
        if show_progress:
            print("Model inference time")
        documents = [self._sentences(document) for document in context]
        answer = {"pruned_context": ["" for _ in documents], "reranking_score": [0.0 for _ in documents]}
        if return_sentence_metrics:
            wanted = set(question.lower().split())
            answer["sentence_probabilities"] = [
                [len(wanted & set(text.lower().split())) / len(wanted) for text in document]
                for document in documents
            ]
        return answer

    def _sentences(self, document):
        kept = [text for text in document if text.strip()]
        lines = [[line for line in text.splitlines() if line.strip()] for text in kept]
        return [part for text, parts in zip(kept, lines) for part in (parts if len(parts) > 1 else [text])]
"""


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


def save_provence(folder: Path, *, code: str = PROVENCE_CODE) -> Path:
    """Save a model whose code lies beside its weights."""
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "model_type": "tiny_provence",
        "architectures": ["TinyProvence"],
        "auto_map": {"AutoConfig": "modeling_tiny.TinyConfig", "AutoModel": "modeling_tiny.TinyProvence"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "modeling_tiny.py").write_text(code)
    save_file({"weight": torch.ones(1)}, folder / "model.safetensors", metadata={"format": "pt"})
    return folder
