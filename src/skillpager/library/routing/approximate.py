"""Approximate routing: the database finds the skills that may fit a query, and their words alone are read.

A lexeme stands for a term in a field and for its impact there, in classes, so that the database can give the
skills in which a term weighs much without those in which it weighs little. From the lists of greatest weight,
within a bound on their length, candidates are proposed as in exact routing; then their own words, with the
counts of the whole library, give each the scores that it has there.

Reference: Lin and Trotman, Anytime Ranking for Impact-Ordered Indexes, ICTIR 2015.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from skillpager.caches import LRUCache
from skillpager.errors import StoreError
from skillpager.library.discovery import FoundSkill, Keep
from skillpager.library.published import beside
from skillpager.library.routing.catalog import DamagedSegmentError
from skillpager.library.routing.features import (
    FOUND_IN,
    NEAREST,
    TERM_FIELDS,
    Searched,
    clause_terms,
    propose,
)
from skillpager.library.routing.fields import (
    FIELDS,
    FieldCounts,
    FieldIndex,
    Hits,
    IntArray,
    TermArray,
    hash_terms,
    pairs_of,
    pick_terms,
    rarity_of,
    routing_terms,
)
from skillpager.library.routing.vectors import (
    DESCRIBED,
    RESCORED,
    SOURCES,
    SkillVectors,
    VectorArray,
    cosines_of,
    load_vectors,
    near_enough,
    sign_digits,
)
from skillpager.library.routing.words import postings_of, segment_of, unpack_words
from skillpager.strategies.navigator.lexical import BM25_B, BM25_K1, clauses_of
from skillpager.types import FloatArray, SkillTerms

if TYPE_CHECKING:
    from skillpager.library.published import PublishedSkills
    from skillpager.stores.postgres_library import LibraryCounts, PostgresLibrary, StoredSkill

logger = logging.getLogger(__name__)

# a lexeme is the code of a term, the letter of a field, and a class of impact
_LETTERS = dict(zip(FIELDS, "ndbxop", strict=True))
_DIGITS = np.frombuffer(b"0123456789abcdefghijklmnopqrstuv", np.uint8)
_CODE_CHARS = 8  # of five bits each: of a million terms hardly two have one code
_SHIFTS = np.arange(_CODE_CHARS - 1, -1, -1, dtype=np.uint64) * np.uint64(5)
# Fields whose terms propose candidates, with the number of terms that a skill usually has in each: about the
# means of 18,812 public skills. Only classes depend on them, no score does.
_USUAL_LENGTHS = {"name": 5, "description": 40, "body": 1000, "opening": 230}
# bounds of the classes of impact, which is BM25 without rarity, 0 to 1; and the mean impact in each class
IMPACT_BOUNDS = (0.3, 0.45, 0.6, 0.8)
_MEAN_IMPACTS = np.array([0.24, 0.38, 0.51, 0.67, 0.86])
_PHRASE_IMPACT = 0.46
# a longer one would not fit into a `tsvector`, and no author writes so many different terms
MOST_LEXEMES = 50_000

# Entries of lists that one query uses: so many, or so many for each skill of the library if that is more.
# Those that are not kept take the server half a microsecond each.
MOST_POSTINGS, POSTINGS_A_SKILL = 200_000, 3
MOST_LISTS = 500
MOST_PAIRS = 400
# so many times as many candidates as exact routing has are read: their scores are estimates until then
BREADTH = 3
MAX_KEPT_BYTES = 32 * 1024**2
MAX_KEPT_LISTS = 32 * 1024**2
# Lists are kept until so many skills have changed, which until then are candidates of each query.
MOST_CHANGED = 50


def skill_terms(words: bytes) -> SkillTerms:
    """Return the terms that the words of a skill hold, as lexemes.

    Raises:
        DamagedSegmentError: They are not such bytes.
    """
    head, hashes, counts = unpack_words(words)
    ends = np.cumsum(head[:, 0]).tolist()
    found: dict[str, list[str]] = {}
    for field, start, end, length in zip(FIELDS, [0, *ends], ends, head[:, 1].tolist(), strict=False):
        classes = np.zeros(end - start, np.uint8)
        if usual := _USUAL_LENGTHS.get(field):
            norm = BM25_K1 * (1 - BM25_B + BM25_B * length / usual)
            impacts = counts[start:end] / (counts[start:end] + norm)
            classes = np.searchsorted(IMPACT_BOUNDS, impacts).astype(np.uint8)
        found[field] = _lexemes(hashes[start:end], field, classes)
    first = dict.fromkeys(
        lexeme for field in ("name", "description", "negated", "opening", "body") for lexeme in found[field]
    )
    counted = tuple(first)[:MOST_LEXEMES]
    uncounted = tuple(dict.fromkeys(found["phrases"]))[: MOST_LEXEMES - len(counted)]
    (vectors,) = segment_of([0], [words]).vectors
    return SkillTerms(
        counted, uncounted, tuple(head[:, 1].tolist()), sign_digits(vectors[DESCRIBED]), vectors.tobytes()
    )


def _lexemes(hashes: TermArray, field: str, classes: NDArray[np.uint8]) -> list[str]:
    chars = np.empty((len(hashes), _CODE_CHARS + 2), np.uint8)
    chars[:, :_CODE_CHARS] = _code_chars(hashes)
    chars[:, -2] = ord(_LETTERS[field])
    chars[:, -1] = classes + ord("0")
    lexemes: list[str] = chars.view(f"S{chars.shape[1]}")[:, 0].astype(str).tolist()
    return lexemes


def _code_chars(hashes: TermArray) -> NDArray[np.uint8]:
    found: NDArray[np.uint8] = _DIGITS[(hashes[:, None] >> _SHIFTS) & np.uint64(31)]
    return found


def _codes(hashes: TermArray) -> list[str]:
    codes: list[str] = _code_chars(hashes).view(f"S{_CODE_CHARS}")[:, 0].astype(str).tolist()
    return codes


def no_skills() -> Searched:
    """Return what routing searches where no folder has skills."""
    none = np.empty(0, np.int32)
    fields = {field: FieldIndex([], none, 0) for field in FIELDS}
    return Searched([], fields, SkillVectors(load_vectors(), [], none, 0), 0)


@dataclass(frozen=True, slots=True)
class _List:
    """The skills in which a term has an impact of one class.

    Attributes:
        lexeme: Their lexeme.
        field: The field.
        term: Number of the term in the query.
        holders: Number of the skills.
        weight: About the BM25 of the term in each.
    """

    lexeme: str
    field: str
    term: int
    holders: int
    weight: float


class _KeptLists:
    """Which skills hold lexemes, as of a version of the library; what is read later may be newer.

    Args:
        library: Number of the library.
        version: Its version before the first list was read.
    """

    def __init__(self, library: int, version: int) -> None:
        self.library, self.version = library, version
        self._by_lexeme = LRUCache[str, IntArray](MAX_KEPT_LISTS, lambda ids: 100 + ids.nbytes)

    def read(self, library: "PostgresLibrary", lexemes: Sequence[str]) -> list[IntArray]:
        """Return the ids of the skills that hold each lexeme, read from the library where it is not kept."""
        found = {lexeme: self._by_lexeme.get(lexeme) for lexeme in lexemes}
        unknown = [lexeme for lexeme, ids in found.items() if ids is None]
        read = library.postings(self.library, unknown) if unknown else []
        for lexeme, ids in zip(unknown, read, strict=False):
            found[lexeme] = self._by_lexeme.put(
                lexeme, np.frombuffer(ids, ">i4").astype(np.int32, copy=False)
            )
        none: IntArray = np.empty(0, np.int64)
        return [none if ids is None else ids for ids in map(found.get, lexemes)]


class ApproximateSearch:
    """What routing searches for a query, from a library that no process need hold in memory. Thread-safe.

    Args:
        library: The library in its store.
        shelf: Its skills, from which their texts are read.
    """

    def __init__(self, library: "PostgresLibrary", shelf: "PublishedSkills") -> None:
        self._library = library
        self._shelf = shelf
        self._kept = LRUCache[int, "StoredSkill"](
            MAX_KEPT_BYTES, lambda stored: len(stored.words) + len(stored.vectors)
        )
        self._lists = _KeptLists(0, 0)

    def size(self) -> int:
        """Return the number of skills of the library.

        Raises:
            StoreError: The store cannot be read.
        """
        counts = self._library.counts(())
        return 0 if counts is None else counts.skills

    def searched(
        self, query: str, local: Searched, found: Sequence[FoundSkill], keep: Keep | None, *, most_terms: int
    ) -> Searched:
        """Return the skills that may be candidates of a query, with the counts of all.

        Args:
            query: The query.
            local: The skills of folders, which are searched as well.
            found: All skills that were found in folders.
            keep: Returns whether a published skill is offered.
            most_terms: As in `features_of`.

        Raises:
            StoreError: The store cannot be read, or an older release has published there.
        """
        asked = routing_terms(query)
        clauses = [routing_terms(clause) for clause in clauses_of(query)]
        terms = list(dict.fromkeys(asked))
        hashes = hash_terms(terms)
        counts = self._library.counts(_codes(hashes))
        if counts is None:
            return local
        if not counts.searchable:
            raise StoreError(
                f"The library {self._library.place} was published by an older SkillPager, without what "
                "approximate routing needs: run `skillpager index` once for it, or set routing to exact."
            )
        fields = _field_counts(counts, local, hashes)
        picked = pick_terms(terms, [fields[name] for name in TERM_FIELDS], most_terms)
        times = Counter(asked)
        often = 1 + np.log([times[term] for term in picked])
        lists, importance = _lists(counts, fields, picked, often)
        pairs = _likely_pairs(asked, fields)
        kept, changed = self._kept_lists(counts)
        of_pairs = self._library.postings(counts.id, _pair_lexemes(pairs))
        of_lists = kept.read(self._library, [each.lexeme for each in lists])
        held: dict[str, IntArray] = {
            pair: np.frombuffer(ids, ">i4") for pair, ids in zip(pairs, of_pairs, strict=False)
        }
        fields["phrases"] = _with_pairs(fields["phrases"], held, local)
        phrases = [
            held[pair]
            for pair in pick_terms(pairs_of(asked), [fields["phrases"]], most_terms)
            if pair in held
        ]
        ids = _propose(lists, of_lists, phrases, fields, importance, clause_terms(clauses, picked))
        near = self._nearest(counts, load_vectors().of_query(hash_terms(asked)))
        stored = self._read(np.unique(np.concatenate([ids, near, np.array(changed, np.int64)])).tolist())
        near_names = {stored[id_].skill.name for id_ in near.tolist() if id_ in stored}
        offered = self._offered(stored.values(), found, keep)
        wanted = np.unique(np.concatenate([hashes, hash_terms(pairs)]))
        return _joined(local, offered, wanted, fields, near_names)

    def _kept_lists(self, counts: "LibraryCounts") -> tuple[_KeptLists, list[int]]:
        """Return the lists that may be used, and the ids of the skills that have changed since the first."""
        kept = self._lists
        if kept.library == counts.id and kept.version <= counts.version:
            if kept.version == counts.version:
                return kept, []
            changed = self._library.changed(kept.version, MOST_CHANGED + 1)
            if len(changed) <= MOST_CHANGED:
                return kept, changed
        self._lists = kept = _KeptLists(counts.id, counts.version)
        return kept, []

    def _nearest(self, counts: "LibraryCounts", query: FloatArray) -> IntArray:
        """Return the ids of the skills whose description is nearest to a query, given its vector."""
        if not query.any():
            return np.empty(0, np.int64)
        found = self._library.nearest(counts, sign_digits(query), RESCORED)
        ids = np.array([id_ for id_, _ in found], np.int64)
        vectors = _unpack_vectors([vectors for _, vectors in found])
        return ids[near_enough(cosines_of(query[None], vectors)[DESCRIBED][:, 0], NEAREST)]

    def _read(self, ids: Sequence[int]) -> dict[int, "StoredSkill"]:
        known = {id_: stored for id_ in ids if (stored := self._kept.get(id_)) is not None}
        read = self._library.skills(ids, known)
        for id_, stored in read.items():
            if stored is not known.get(id_):
                self._kept.put(id_, stored)
        return read

    def _offered(
        self, stored: Iterable["StoredSkill"], found: Sequence[FoundSkill], keep: Keep | None
    ) -> list[tuple[FoundSkill, "StoredSkill"]]:
        """Return those skills that are wanted and not in folders as well, by name."""
        by_name = {each.skill.name: each for each in stored}
        skills = sorted(
            (self._shelf.found(each.version, each.skill) for each in stored), key=lambda skill: skill.name
        )
        shown = beside(found, skills, keep)
        return [(skill, by_name[skill.name]) for skill in shown if skill.shadowed_by is None]


def _field_counts(counts: "LibraryCounts", local: Searched, hashes: TermArray) -> dict[str, FieldCounts]:
    """Return how many skills hold the terms of a query in each field, those of folders included."""
    of_codes = dict(zip(_codes(hashes), hashes.tolist(), strict=True))
    of_letters = {letter: field for field, letter in _LETTERS.items()}
    held: dict[str, Counter[int]] = {field: Counter() for field in FIELDS}
    for lexeme, holders in counts.holders.items():
        held[of_letters[lexeme[_CODE_CHARS]]][of_codes[lexeme[:_CODE_CHARS]]] += holders
    lengths = dict(zip(FIELDS, counts.lengths or [0] * len(FIELDS), strict=True))
    for field, index in local.fields.items():
        held[field].update(dict(zip(hashes.tolist(), index.holders(hashes).tolist(), strict=True)))
        lengths[field] += int(index.lengths.sum(dtype=np.float64))
    size = counts.skills + local.size
    return {field: FieldCounts(size, lengths[field], held[field]) for field in FIELDS}


def _lists(
    counts: "LibraryCounts",
    fields: Mapping[str, FieldCounts],
    picked: Sequence[str],
    often: NDArray[np.float64],
) -> tuple[list[_List], NDArray[np.float64]]:
    """Return the lists that weigh most, within the bounds, and the importance of each term."""
    hashes = hash_terms(picked)
    size = fields["body"].size
    rarity = {field: rarity_of(fields[field].holders(hashes), size) for field in FIELDS}
    importance = np.min([rarity[field] for field in TERM_FIELDS], axis=0) * often
    found = []
    for number, code in enumerate(_codes(hashes)):
        for field in _USUAL_LENGTHS:
            weight = rarity[field][number] * (BM25_K1 + 1)
            for place, impact in enumerate(_MEAN_IMPACTS.tolist()):
                lexeme = f"{code}{_LETTERS[field]}{place}"
                if holders := counts.holders.get(lexeme, 0):
                    found.append(_List(lexeme, field, number, holders, weight * impact))
    found.sort(key=lambda each: -each.weight * importance[each.term])
    kept, room = list[_List](), max(MOST_POSTINGS, POSTINGS_A_SKILL * size)
    for each in found:
        if each.holders <= room and len(kept) < MOST_LISTS:
            kept.append(each)
            room -= each.holders
    return kept or found[:1], importance


def _likely_pairs(asked: Sequence[str], fields: Mapping[str, FieldCounts]) -> list[str]:
    """Return the pairs of neighbouring terms of which any skill may hold both, those of rare terms first."""
    terms = list(dict.fromkeys(asked))
    hashes = hash_terms(terms)
    most = np.max([fields[field].holders(hashes) for field in ("description", "body")], axis=0)
    holders = dict(zip(terms, most.tolist(), strict=True))
    fewest = {
        pair: min(holders[first], holders[second])
        for pair, first, second in zip(pairs_of(asked), asked, asked[1:], strict=False)
    }
    return sorted((pair for pair in fewest if fewest[pair]), key=lambda pair: fewest[pair])[:MOST_PAIRS]


def _pair_lexemes(pairs: Sequence[str]) -> list[str]:
    hashes = hash_terms(pairs)
    return _lexemes(hashes, "phrases", np.zeros(len(hashes), np.uint8))


def _with_pairs(counts: FieldCounts, held: Mapping[str, IntArray], local: Searched) -> FieldCounts:
    """Return the counts of phrases, given the published skills that hold each pair of terms."""
    hashes = hash_terms(held)
    by_term = Counter(dict(zip(hashes.tolist(), map(len, held.values()), strict=True)))
    if local.size:  # most libraries of a store have none beside them
        by_term.update(
            dict(zip(hashes.tolist(), local.fields["phrases"].holders(hashes).tolist(), strict=True))
        )
    return FieldCounts(counts.size, counts.total, by_term)


def _propose(
    lists: Sequence[_List],
    postings: Sequence[IntArray],
    phrases: Sequence[IntArray],
    fields: Mapping[str, FieldCounts],
    importance: NDArray[np.float64],
    parts: NDArray[np.bool_],
) -> IntArray:
    """Return the ids of the skills that may be candidates, by their estimated scores.

    Args:
        lists: The lists.
        postings: The skills of each.
        phrases: The skills that hold each pair of terms.
        fields: Counts of the fields.
        importance: Of each term.
        parts: The terms of each clause.
    """
    held = [*postings, *phrases]
    # ids are small numbers: by place in an array, for to sort them takes longer than all else
    place_of = np.zeros(1 + max((int(listed.max()) for listed in held if len(listed)), default=0), np.int32)
    for listed in held:
        place_of[listed] = 1
    ids = np.flatnonzero(place_of)
    place_of[ids] = np.arange(len(ids))
    places = [place_of[listed] for listed in held]
    further = np.zeros(len(ids))
    hits: dict[str, list[tuple[IntArray, _List]]] = {field: [] for field in FOUND_IN}
    for each, skills in zip(lists, places, strict=False):
        if each.field in hits:
            hits[each.field].append((skills, each))
        else:
            further[skills] += each.weight
    for skills in places[len(lists) :]:
        rarity = float(rarity_of(np.array(len(skills)), fields["phrases"].size))
        further[skills] += rarity * (BM25_K1 + 1) * _PHRASE_IMPACT
    estimated = [_hits(hits[field]) for field in FOUND_IN]
    return ids[propose(estimated, further, importance, parts, breadth=BREADTH)]


def _hits(held: Sequence[tuple[IntArray, _List]]) -> Hits:
    sizes = [len(skills) for skills, _ in held]
    return Hits(
        np.concatenate([np.empty(0, np.int32), *(skills for skills, _ in held)]).astype(np.int32),
        np.repeat(np.array([each.term for _, each in held], np.int32), sizes),
        np.repeat(np.array([each.weight for _, each in held], np.float32), sizes),
        np.empty(0),
    )


def _joined(
    local: Searched,
    offered: Sequence[tuple[FoundSkill, "StoredSkill"]],
    terms: TermArray,
    fields: Mapping[str, FieldCounts],
    near: Collection[str],
) -> Searched:
    """Return the skills of folders and the offered ones, with what is known of them and of the library.

    Args:
        local: The skills of folders.
        offered: The others.
        terms: The terms of the query.
        fields: Counts of the fields in all skills.
        near: Names of the others that are nearest to the query among all.
    """
    try:
        parts = postings_of([stored.words for _, stored in offered], terms)
    except DamagedSegmentError as problem:
        raise StoreError(
            f"The words of published skills are damaged ({problem}): publish them again."
        ) from problem
    skills = [*local.skills, *(skill for skill, _ in offered)]
    order = sorted(range(len(skills)), key=lambda place: skills[place].name)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    split = len(local.skills)
    joined = {
        field: local.fields[field].joined(places[:split], part, places[split:], fields[field])
        for field, part in zip(FIELDS, parts, strict=True)
    }
    vectors = _unpack_vectors([stored.vectors for _, stored in offered])
    is_near = np.array([skill.name in near for skill, _ in offered], bool)
    joined_vectors = local.vectors.joined(places[:split], vectors, places[split:], is_near)
    return Searched([skills[place] for place in order], joined, joined_vectors, fields["body"].size)


def _unpack_vectors(data: Sequence[bytes]) -> VectorArray:
    """Return `(n, len(SOURCES), dim)` int8: the vectors of skills, given the bytes of each."""
    return np.frombuffer(b"".join(data), np.int8).reshape(len(data), len(SOURCES), load_vectors().dim)
