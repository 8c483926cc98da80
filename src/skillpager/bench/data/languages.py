"""The languages of a skill: is it in English, in another language, or in both?

The paper counts English-dominant skills, skills with mixed languages and others, and does not say how. Here
letters tell other scripts, and stop words tell English from other languages in Latin script; code is left
out. Detectors of languages name one for a text, but the question is also which skills have two.

Reference: paper §4.4.
"""

import re
from enum import StrEnum

# a smaller share of another language is names, quotations and sample data
MIXED_SHARE = 0.1
# from here on the other language dominates
OTHER_SHARE = 0.5
# fewer different stop words of a language are chance: names, abbreviations
MIN_STOP_WORDS = 4
# a Chinese or Japanese word has about so many characters; they are written without spaces
CHARACTERS_A_WORD = 1.7

_CODE = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,}).*?^[ \t]*(?P=fence)|`[^`\n]*`|https?://\S+", re.DOTALL | re.MULTILINE
)
_LATIN = re.compile(r"[a-z\u00c0-\u024f\u1e00-\u1eff]+", re.IGNORECASE)
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
# Cyrillic to the last script before Greek Extended, and Hangul; Greek letters are symbols in English formulas
_SPACED = re.compile(r"[\u0400-\u1cff\uac00-\ud7af]+")

# frequent words; none is an English word, and none of the English ones is a word of the other languages
_STOP_WORDS = {
    "english": "the of and to is for with that this from when if not be or by are it you your",
    "german": "der und das ist nicht mit für auf eine ein wird werden sich auch oder wenn zu den dem",
    "french": "le les des et une dans pour qui sur avec pas vous au ou sont par ce cette il",
    "spanish": "el los las y es una para por del se lo como más pero está si cada sus",
    "portuguese": "os uma não são você para ou mais quando ao pela pelo isso seu está também das",
    "italian": "il di che è non della sono gli nel alla più anche questo dei delle una ed",
    "dutch": "het een van en niet dat zijn voor te wordt deze naar ook bij worden je",
    "polish": "nie jest się na że jak lub dla są przez oraz tylko po przy tym może być tego od",
    "turkish": "ve bir için ile olarak da de daha veya gibi olan çok ne kadar sonra ise değil",
    "vietnamese": "và của là các có được cho không một những với khi này để trong từ theo hoặc đã",
    "indonesian": "yang dan untuk dengan dari ini adalah tidak pada atau dalam akan oleh itu juga ke",
}
_WORDS = {language: frozenset(words.split()) for language, words in _STOP_WORDS.items()}
_ENGLISH = _WORDS.pop("english")


class Language(StrEnum):
    """The languages of a text."""

    ENGLISH = "English-dominant"
    MIXED = "mixed languages"
    OTHER = "other language dominant"


def name_language(text: str) -> Language:
    """Return whether a text is mainly in English, in another language, or in both.

    A text of code alone counts as English, as its keywords are.
    """
    share = share_of_other_languages(text)
    if share >= OTHER_SHARE:
        return Language.OTHER
    return Language.MIXED if share >= MIXED_SHARE else Language.ENGLISH


def share_of_other_languages(text: str) -> float:
    """Return the share of the words of a text that are not English, about, 0 to 1; 0 if it has no words.

    Words in Latin script are divided as their stop words are: between English and the one other language
    with most of them.
    """
    prose = _CODE.sub(" ", text)
    latin = [word.lower() for word in _LATIN.findall(prose)]
    english = sum(word in _ENGLISH for word in latin)
    other = 0
    for words in _WORDS.values():
        found = [word for word in latin if word in words]
        if len(set(found)) >= MIN_STOP_WORDS:
            other = max(other, len(found))
    foreign = len(_UNSPACED.findall(prose)) / CHARACTERS_A_WORD + len(_SPACED.findall(prose))
    if other:
        foreign += len(latin) * other / (other + english)
        latin_english = len(latin) * english / (other + english)
    else:
        latin_english = float(len(latin))
    words_in_all = foreign + latin_english
    return foreign / words_in_all if words_in_all else 0.0
