"""Tests neither read nor write the data sets and estimates of the person who runs them."""

import pytest

# This package registers values when it is imported; its test installs it and uses it in other processes.
collect_ignore = ["plugin_package"]


@pytest.fixture(autouse=True)
def _own_data_folder(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path_factory.getbasetemp() / "data"))


@pytest.fixture(autouse=True, scope="session")
def _own_data_folder_for_the_session(tmp_path_factory):
    # Fixtures of a session or a module start processes before those of a test are there.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POSTMAX_DATA", str(tmp_path_factory.getbasetemp() / "data"))
        yield
