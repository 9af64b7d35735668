"""Labels that are the same word, written in two ways."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from postmax.checking.catalogue import register
from postmax.checking.examined import Examined
from postmax.checking.finding import Finding
from postmax.data.label_text import spelling
from postmax.data.problems import in_words

_MOST_NAMES = 10_000
# A typing error is rare beside the word that was meant, and in a short word it is often another word.
_SHORTEST, _RARE, _FEW = 5, 0.05, 2
_JOINTS = re.compile(r"(?<=\w)[-_./'’ ]+(?=\w)|[.,;: ]+$")
_SHOWN = 5


def find(data: Examined) -> Iterator[Finding]:
    """Yield the groups of labels that differ only in case, in accents and punctuation, or in one letter.

    Example:
        >>> list(typing_errors({"adelie": 140, "adelei": 2, "gentoo": 90}))
        [('adelei', 'adelie')]
    """
    names = {name: count for name, count in data.counts.items() if count}
    merge = f"To make them one class: {in_words({'merge_labels': ['']})}" if data.label else "Write them in one way."
    for group in _grouped(names, spelling):
        yield _finding(group, names, "differ only in upper and lower case or white space.", merge, data)
    words = {name: count for name, count in names.items() if any(letter.isalpha() for letter in name)}
    for group in _grouped(words, plain):
        if len({spelling(name) for name in group}) > 1:
            yield _finding(group, names, "differ only in accents or punctuation.", "Write them in one way.", data)
    if len(words) <= _MOST_NAMES:
        for rare, usual in typing_errors(words):
            what = "differ in one letter only, so one may be a typing error."
            yield _finding([usual, rare], names, what, f"If it is one, write {usual!r}.", data, note=True)


def plain(name: str) -> str:
    """Return a label without case, accents, punctuation inside and at its end.

    Example:
        >>> plain("Crème-brûlée"), plain("creme brulee."), plain("A-")
        ('cremebrulee', 'cremebrulee', 'a-')
    """
    letters = unicodedata.normalize("NFKD", spelling(_JOINTS.sub("", name.strip())))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def typing_errors(names: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield pairs of a rare label and a frequent one, where one letter is wrong, missing, doubled or exchanged."""
    near: dict[str, list[str]] = defaultdict(list)
    # Of names that are written in two ways, the last and most frequent one stays.
    forms = {plain(name): name for name in sorted(names, key=names.__getitem__)}
    for form in forms:
        if len(form) >= _SHORTEST:
            for shortened in {form, *(form[:i] + form[i + 1 :] for i in range(len(form)))}:
                near[shortened].append(form)
    seen = set()
    for group in near.values():
        for place, first in enumerate(group):
            for second in group[place + 1 :]:
                rare, usual = sorted((forms[first], forms[second]), key=names.__getitem__)
                if (rare, usual) in seen or names[rare] > max(_FEW, _RARE * names[usual]):
                    continue
                if names[usual] >= 5 * names[rare] and _one_letter(first, second):
                    seen.add((rare, usual))
                    yield rare, usual


def _one_letter(first: str, second: str) -> bool:
    """Return whether two words differ by one letter. Another digit is another name, such as type1 and type2."""
    short, long = sorted((first, second), key=len)
    start = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    rest_short, rest_long = short[start:], long[start:]
    changed = {*rest_short[:1], *rest_long[:1]}
    if any(not letter.isalpha() for letter in changed):
        return False
    if len(short) < len(long):
        return rest_short == rest_long[1:]
    exchanged = rest_short[:2] == rest_long[1::-1] and rest_short[2:] == rest_long[2:]
    return exchanged or rest_short[1:] == rest_long[1:]


def _grouped(names: Mapping[str, int], key: object) -> list[list[str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[key(name)].append(name)  # type: ignore[operator]
    return [sorted(group, key=lambda name: (-names[name], name)) for group in groups.values() if len(group) > 1]


def _finding(
    group: Sequence[str], counts: Mapping[str, int], what: str, remedy: str, data: Examined, *, note: bool = False
) -> Finding:
    shown = [f"{name[:60]!r} ({counts[name]:,} row{'s' * (counts[name] != 1)})" for name in group[:_SHOWN]]
    more = len(group) - len(shown)
    listed = f"{', '.join(shown)}, … ({more} more)" if more else f"{', '.join(shown[:-1])} and {shown[-1]}"
    odd = [place for place, code in enumerate(data.codes.tolist()) if data.classes[code] in group[1:]]
    columns = () if data.label is None else (data.label,)
    severity = "note" if note else "problem"
    return Finding("spelling", f"Labels {listed} {what}", remedy, columns, data.at(odd), severity)  # type: ignore[arg-type]


register("spelling", find, order=10)
