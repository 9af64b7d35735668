"""Read settings as people write them: in YAML files, and as `key=value` on a command line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from postmax.errors import DataError, InputError
from postmax.files import existing_file

# The name of a section that has options but no name.
DEFAULT_NAMES = {"model": "mlp", "method": "standard", "loss": "fpml", "optimiser": "sgd", "schedule": "cosine"}


class _Words(yaml.SafeLoader):
    """YAML with fewer surprises: 1e-3 is a number, only true and false are truth values, and no key is there twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the keys and values of a section."""
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                problem = f"the key {key.value!r} is there twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_Words.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:bool" or first in "tTfF"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Words.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Read a YAML file that holds keys and values.

    Raises:
        DataError: If the file is missing, damaged, or holds anything else.
    """
    path = existing_file(path)
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _Words)  # noqa: S506  (a SafeLoader)
    except OSError as error:
        raise DataError(f"{path} could not be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not a text file, so it is not YAML.") from error
    except yaml.YAMLError as error:
        raise DataError(f"{path} is not YAML: {_yaml_problem(error)}.") from error
    if content is None:
        raise DataError(f"{path} is empty.")
    if not isinstance(content, dict):
        found = "a list" if isinstance(content, list) else f"only {str(content)[:40]!r}"
        raise DataError(f"{path} should hold keys and values (`key: value`), but holds {found}.")
    return content


def _yaml_problem(error: yaml.YAMLError) -> str:
    """Return what a file has in place of YAML, with the line as an editor counts it."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
    return problem if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: {problem}"


def with_overrides(content: Mapping[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """Return plain values with `key=value` texts put in, such as `optimiser.lr=0.1`. Values are read as YAML.

    Raises:
        InputError: If a text is not of that form.

    Example:
        >>> with_overrides({"loss": "ce"}, ["loss.weight=null", "seeds=[1, 2]"])
        {'loss': {'name': 'ce', 'weight': None}, 'seeds': [1, 2]}
    """
    result: dict[str, Any] = json.loads(json.dumps(content))
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise InputError(f"{text!r} is not of the form key=value, such as optimiser.lr=0.1.")
        try:
            parsed = yaml.load(value, _Words) if value.strip() else None  # noqa: S506  (a SafeLoader)
        except yaml.YAMLError as error:
            if value.strip() != ",":  # the decimal comma
                reason = getattr(error, "problem", None) or "it cannot be read"
                raise InputError(f"{text!r}: the value is not YAML ({reason}).") from error
            parsed = ","
        set_key(result, key.strip(), parsed)
    return result


def set_key(content: dict[str, Any], key: str, value: Any) -> None:
    """Put a value under a dotted key. A name on the way to it, such as `loss: ce`, becomes `{name: ce}`."""
    *parents, last = key.split(".")
    for part in parents:
        inner = content.get(part)
        if not isinstance(inner, str | Mapping | None):
            raise InputError(f"{key}: {part} has no keys, it is {inner!r}.")
        content[part] = {"name": inner} if isinstance(inner, str) else dict(inner or {})
        content = content[part]
    # Mappings are merged, so that {loss: {divergence: sl}} changes one option and keeps the others.
    before = content.get(last)
    if isinstance(value, str) and isinstance(before, Mapping) and before.get("name", DEFAULT_NAMES.get(last)) == value:
        value = {"name": value}  # a name that is given after options keeps the options
    if isinstance(value, Mapping) and isinstance(before, str | Mapping):
        value = {**({"name": before} if isinstance(before, str) else before), **value}
    content[last] = value


def single_keys(pairs: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """Yield the dotted keys of single values; a section that is set as a whole gives the keys inside it.

    Example:
        >>> list(single_keys([("loss", "ce"), ("optimiser", {"lr": 0.1, "l1": 0})]))
        ['loss.name', 'optimiser.lr', 'optimiser.l1']
    """
    for key, value in pairs:
        if isinstance(value, Mapping):
            yield from single_keys((f"{key}.{inner}", content) for inner, content in value.items())
        else:
            yield f"{key}.name" if key in DEFAULT_NAMES else key


def as_overrides(settings: Mapping[str, Any]) -> str:
    """Return settings as `key=value` texts in one line, as `with_overrides` and the command line read them.

    Example:
        >>> as_overrides({"optimiser.lr": 0.1, "ema": None, "loss": {"name": "gce", "q": 0.7}})
        'optimiser.lr=0.1 ema=null loss={"name": "gce", "q": 0.7}'
    """
    texts = {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in settings.items()
    }
    return " ".join(f"{key}={text}" for key, text in texts.items())
