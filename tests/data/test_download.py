"""Downloads against a server that drops connections, ignores ranges and sends the wrong thing."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from postmax.data import download
from postmax.data.catalogue import Request
from postmax.data.download import RemoteFile, fetch
from postmax.errors import DataError
from postmax.progress import listening

CONTENT = bytes(range(256)) * 4000


class Server(ThreadingHTTPServer):
    """Serves CONTENT; what goes wrong is set on it."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.ranges, self.cut_after, self.status = CONTENT, True, None, 200
        self.requests = []
        self.before_answer = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/file.bin"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        wanted = self.headers.get("Range")
        server.requests.append(wanted)
        if server.before_answer is not None:
            server.before_answer.wait(10)
        if server.status != 200:
            self.send_error(server.status)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and server.ranges else 0
        if start >= len(server.content) and start:
            self.send_error(416)
            return
        body = server.content[start:]
        self.send_response(206 if wanted and server.ranges else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: server.cut_after])

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def remote(server, algorithm="md5"):
    return RemoteFile(server.url, hashlib.new(algorithm, CONTENT).hexdigest(), algorithm)


@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
def test_it_arrives_and_is_not_fetched_twice(server, tmp_path, algorithm):
    folder = tmp_path / "new" / "folder"
    path = fetch(remote(server, algorithm), folder)
    assert path == folder / "file.bin"
    assert path.read_bytes() == CONTENT
    assert fetch(remote(server, algorithm), folder) == path
    assert server.requests == [None]
    assert [p.name for p in folder.iterdir()] == ["file.bin"]


def test_cut_off_then_resumed(server, tmp_path):
    server.cut_after = 300_000
    with pytest.raises(DataError, match="cannot be downloaded: the connection ended after"):
        fetch(remote(server), tmp_path)
    kept = (tmp_path / "file.bin.part").stat().st_size
    assert 0 < kept <= 300_000
    assert not (tmp_path / "file.bin").exists()
    server.cut_after = None
    assert fetch(remote(server), tmp_path).read_bytes() == CONTENT
    assert server.requests == [None, f"bytes={kept}-"]
    assert [p.name for p in tmp_path.iterdir()] == ["file.bin"]


def test_a_server_that_ignores_ranges_sends_all_of_it(server, tmp_path):
    server.ranges = False
    (tmp_path / "file.bin.part").write_bytes(CONTENT[:1000])
    assert fetch(remote(server), tmp_path).read_bytes() == CONTENT


def test_a_part_that_is_already_whole(server, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    assert fetch(remote(server), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("part", [b"of another version", bytes(len(CONTENT) + 5)])
def test_a_part_of_another_version_is_fetched_from_the_beginning(server, tmp_path, part):
    (tmp_path / "file.bin.part").write_bytes(part)
    assert fetch(remote(server), tmp_path).read_bytes() == CONTENT
    assert server.requests == [f"bytes={len(part)}-", None]


def test_wrong_content_is_not_kept(server, tmp_path):
    server.content = CONTENT[::-1]
    with pytest.raises(DataError, match=r"its MD5 is .* but the published file has"):
        fetch(remote(server), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_local_file_is_named(server, tmp_path):
    (tmp_path / "file.bin").write_bytes(b"damaged")
    with pytest.raises(DataError, match=r"file\.bin: its MD5 is"):
        fetch(remote(server), tmp_path)


@pytest.mark.parametrize("status", [403, 404, 500])
def test_the_server_says_no(server, tmp_path, status):
    server.status = status
    with pytest.raises(DataError, match=f"answers {status}") as error:
        fetch(remote(server), tmp_path)
    assert str(tmp_path / "file.bin") in str(error.value)


def test_no_network(tmp_path):
    with Server() as server:
        url = server.url
    with pytest.raises(DataError, match=r"cannot be downloaded.*put it at .*file\.bin"):
        fetch(RemoteFile(url, "0"), tmp_path)


def test_only_the_web(tmp_path):
    with pytest.raises(DataError, match="only http and https"):
        fetch(RemoteFile("file:///etc/passwd", "0"), tmp_path)


def test_progress_is_told(server, tmp_path):
    told = []
    with listening(lambda stage: told.append(str(stage))):
        fetch(remote(server), tmp_path)
    assert told[-1] == "downloading file.bin: 1.0 of 1.0 MB (100 %)"
    assert len(told) > 1


def test_a_short_download_says_nothing(server, tmp_path, capfd):
    fetch(remote(server), tmp_path)
    assert capfd.readouterr() == ("", "")


def test_two_who_ask_at_once_download_once(server, tmp_path):
    server.before_answer = threading.Event()
    threads = [threading.Thread(target=fetch, args=(remote(server), tmp_path)) for _ in range(2)]
    for thread in threads:
        thread.start()
    server.before_answer.set()
    for thread in threads:
        thread.join()
    assert server.requests == [None]
    assert [p.name for p in tmp_path.iterdir()] == ["file.bin"]


def test_only_when_asked(server, tmp_path):
    places, file = [tmp_path / "raw" / "file.bin", tmp_path / "set" / "file.bin"], remote(server)
    with pytest.raises(DataError, match=r"set/file\.bin is missing\. Look there\. .*download=True"):
        Request(tmp_path, "train").file(places, remote=file, how="Look there.")
    assert server.requests == []
    assert Request(tmp_path, "train", download=True).file(places, remote=file, how="").read_bytes() == CONTENT
    with pytest.raises(DataError, match="is missing"):
        Request(tmp_path, "train", download=True).file([tmp_path / "licensed"], how="Register first.")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
def test_a_full_disk_is_no_fault_of_the_network(tmp_path):
    with Path("/dev/full").open("wb", buffering=0) as file, pytest.raises(DataError) as caught:
        download._write(file, b"bytes", tmp_path / "file.part")
    assert "No space left on device. Free some space on its disk" in str(caught.value)
    assert "downloaded" not in str(caught.value)
