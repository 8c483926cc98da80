"""Train the vectors of terms by which routing finds skills that share few words with a query.

The vector of a text is the sum of the vectors of its terms, each with a weight that differs between queries
and skills (`skillpager.library.routing.vectors`). They begin as the embeddings of the terms by the base
encoder, reduced to fewer numbers, and learn to find the description of a skill, among those of a batch, by a
paragraph of its body, and by queries that need it. `train_router.py` calls this: for each fold without the
queries and skills of that fold, and for the vectors that ship with all.
"""

import logging
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from routing_data import Question
from skillpager.encoders.builtin import BuiltinEncoder
from skillpager.library.routing.fields import hash_terms, routing_terms
from skillpager.library.routing.vectors import LARGEST, TermVectors
from skillpager.types import FloatArray, Skill

logger = logging.getLogger("router")

DIM = 192
LEAST_SKILLS = 4  # that hold a term
MOST_TERMS = 40_000
REDUCED_BY = 20_000  # of the commonest terms, by whose directions embeddings are reduced

STEPS, BATCH, OTHERS = 300, 768, 384  # others: descriptions in a batch that no text of it is about
ASKED_SHARE = 0.15  # of a batch; the rest are paragraphs
RATE, TEMPERATURE = 2e-3, 0.05
PARAGRAPHS, PARAGRAPH_TERMS = 12, 150
OPENING_TERMS = 250

Counts = tuple[
    NDArray[np.int64], NDArray[np.float32]
]  # different terms of a text, and the logarithm of each count
_CODE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Texts:
    """The texts that vectors learn from, as numbers of terms.

    Attributes:
        vocabulary: The terms, the commonest first.
        holders: `(t,)`: how many skills hold each.
        described: Name and description of each skill.
        paragraphs: Some paragraphs of each skill.
        asked: The queries.
        needs: The skills that each query needs, by their places.
    """

    vocabulary: Sequence[str]
    holders: NDArray[np.int64]
    described: Sequence[Counts]
    paragraphs: Sequence[Sequence[Counts]]
    asked: Sequence[Counts]
    needs: Sequence[Collection[int]]


def read_texts(
    skills: Sequence[tuple[str, Skill]], asked: Sequence[Question], random: np.random.Generator
) -> Texts:
    """Return the texts of skills, given with their ids, and of queries."""
    held: Counter[str] = Counter()
    described, paragraphs = [], []
    for _, skill in skills:
        entry = skill.files[0]
        prose = _CODE.sub(" ", entry.text[entry.body_start :])
        parts = [part for part in re.split(r"\n\s*\n", prose) if 12 <= len(part.split()) <= 150]
        chosen = [parts[place] for place in random.permutation(len(parts))[:PARAGRAPHS]]
        described.append((routing_terms(skill.name), routing_terms(skill.description)))
        paragraphs.append([routing_terms(part)[:PARAGRAPH_TERMS] for part in chosen])
        opening = routing_terms(prose)[:OPENING_TERMS]
        held.update({term for terms in (*described[-1], *paragraphs[-1], opening) for term in terms})
    vocabulary = [term for term, count in held.most_common(MOST_TERMS) if count >= LEAST_SKILLS]
    numbers = {term: number for number, term in enumerate(vocabulary)}

    def counts(*texts: Iterable[str]) -> Counts:
        found = [Counter(numbers[term] for term in terms if term in numbers) for terms in texts]
        terms = np.array([term for each in found for term in each], np.int64)
        often = np.array([count for each in found for count in each.values()], np.float32)
        return terms, 1 + np.log(often)

    places = {id: place for place, (id, _) in enumerate(skills)}
    return Texts(
        vocabulary,
        np.array([held[term] for term in vocabulary]),
        [counts(*each) for each in described],
        [[text for part in parts if len((text := counts(part))[0])] for parts in paragraphs],
        [counts(routing_terms(question.text)) for question in asked],
        [{places[id] for id in question.needs} for question in asked],
    )


def embed_terms(vocabulary: Sequence[str], base: Path, stored: Path) -> FloatArray:
    """Return `(t, DIM)` unit rows: embeddings of terms by the encoder in the folder `base`, reduced.

    They are kept in the file `stored`.
    """
    if stored.exists():
        return np.asarray(np.load(stored), np.float32)
    rows = BuiltinEncoder(folder=base).encode_documents(vocabulary)
    rows -= rows.mean(0)
    _, _, directions = np.linalg.svd(rows[:REDUCED_BY], full_matrices=False)
    reduced = rows @ directions[:DIM].T
    reduced /= np.linalg.norm(reduced, axis=1, keepdims=True)
    np.save(stored, reduced)
    return np.asarray(reduced, np.float32)


class Sums(nn.Module):
    """Vectors of texts as weighted sums of those of their terms."""

    def __init__(self, rows: FloatArray, weights: FloatArray) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.tensor(rows))  # a copy: training changes it
        self.in_query = nn.Parameter(torch.from_numpy(np.log(weights)))
        self.in_skill = nn.Parameter(torch.from_numpy(np.log(weights)))

    def forward(self, texts: Sequence[Counts], weights: Tensor) -> Tensor:
        """Return `(texts, DIM)` unit rows; `weights` are the logarithms of those of the terms."""
        terms = torch.from_numpy(np.concatenate([terms for terms, _ in texts]))
        often = torch.from_numpy(np.concatenate([often for _, often in texts]))
        starts = torch.from_numpy(np.cumsum([0, *(len(terms) for terms, _ in texts[:-1])]))
        summed = functional.embedding_bag(
            terms, self.rows, starts, mode="sum", per_sample_weights=often * weights[terms].exp()
        )
        return functional.normalize(summed, dim=1)


def train_vectors(
    texts: Texts, rows: FloatArray, asked: Sequence[int], skills: Collection[int], *, seed: int = 0
) -> TermVectors:
    """Return vectors that learned from some queries and from the skills.

    Args:
        texts: All texts.
        rows: `(t, DIM)`, with which they begin.
        asked: Places of the queries.
        skills: Places of the skills from which they learn.
        seed: Draws.
    """
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    rarity = np.log1p(len(texts.described) / texts.holders)
    model = Sums(rows, (rarity / rarity.mean()).astype(np.float32))
    weights = [model.in_query, model.in_skill]
    optimizer = torch.optim.Adam([{"params": [model.rows]}, {"params": weights}])
    able = [
        place for place in sorted(skills) if len(texts.described[place][0]) > 2 and texts.paragraphs[place]
    ]
    asked = [place for place in asked if len(texts.asked[place][0])]
    for step in range(STEPS):
        loss = _loss(model, _draw(texts, able, asked, random))
        for group, times in zip(optimizer.param_groups, (1, 2), strict=True):
            group["lr"] = times * RATE * min(1, step / 50) * (1 - step / STEPS)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if step % 100 == 0:
            logger.info("vectors: step %d, loss %.3f", step, loss.item())
    return _rounded(model, texts.vocabulary)


@dataclass(frozen=True)
class _Batch:
    """Texts, descriptions, the description of each text, and others that fit it as well."""

    texts: Sequence[Counts]
    described: Sequence[Counts]
    right: NDArray[np.int64]
    as_well: Sequence[tuple[int, int]]


def _draw(texts: Texts, able: Sequence[int], asked: Sequence[int], random: np.random.Generator) -> _Batch:
    queries = random.choice(asked, int(BATCH * ASKED_SHARE), replace=False).tolist()
    skills = random.choice(able, BATCH - len(queries), replace=False).tolist()
    parts = [texts.paragraphs[place] for place in skills]
    shown = [part[int(random.integers(len(part)))] for part in parts] + [
        texts.asked[each] for each in queries
    ]
    needs = [{place} for place in skills] + [set(texts.needs[each]) for each in queries]
    right = [int(random.choice(sorted(each))) for each in needs]
    others = random.choice(able, OTHERS, replace=False).tolist()
    places = list(dict.fromkeys([*right, *others]))
    column = {place: number for number, place in enumerate(places)}
    as_well = [
        (row, column[place])
        for row, (each, own) in enumerate(zip(needs, right, strict=True))
        for place in each
        if place != own and place in column
    ]
    return _Batch(
        shown,
        [texts.described[place] for place in places],
        np.array([column[place] for place in right]),
        as_well,
    )


def _loss(model: Sums, batch: _Batch) -> Tensor:
    """Return the cross-entropy of the right description of each text among those of the batch."""
    queries = model(batch.texts, model.in_query)
    likeness = queries @ model(batch.described, model.in_skill).T / TEMPERATURE
    for row, column in batch.as_well:
        likeness[row, column] = -torch.inf
    return functional.cross_entropy(likeness, torch.from_numpy(batch.right))


def _rounded(model: Sums, vocabulary: Sequence[str]) -> TermVectors:
    """Return the trained vectors in 8 bits a number; what is lost of their lengths goes into the weights."""
    rows = model.rows.detach().numpy()
    largest = np.abs(rows).max(axis=1)
    in_query, in_skill = (
        (np.exp(weights.detach().numpy()) * largest).astype(np.float32)
        for weights in (model.in_query, model.in_skill)
    )
    scale = in_skill.mean()  # only directions count
    hashes = hash_terms(vocabulary)
    order = np.argsort(hashes)
    return TermVectors(
        hashes[order],
        np.rint(rows * (LARGEST / largest[:, None])).astype(np.int8)[order],
        (in_query / scale)[order],
        (in_skill / scale)[order],
    )


def write_vectors(vectors: TermVectors, path: Path) -> None:
    """Write vectors as `skillpager.library.routing.vectors.load_vectors` reads them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(
        path,
        hashes=vectors.hashes,
        rows=vectors.rows,
        in_query=vectors.in_query,
        in_skill=vectors.in_skill,
    )
