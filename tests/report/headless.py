"""A headless Chromium, spoken to over its debugging pipe: no driver, no port, no package."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

import pytest


def browser_path():
    """The browser; the test is skipped if there is none, unless POSTMAX_REQUIRE_BROWSER=1."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    if os.environ.get("POSTMAX_REQUIRE_BROWSER") == "1":
        pytest.fail("POSTMAX_REQUIRE_BROWSER=1, but there is no chromium, chromium-browser or google-chrome.")
    return pytest.skip("there is no chromium, chromium-browser or google-chrome to open the page with")


class Browser:
    """One tab; `events` are all that the browser has reported."""

    def __init__(self, path, seconds=60.0):
        self.seconds = seconds
        self.events = []
        self._number = 0
        self._buffer = b""
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        # The browser reads commands from descriptor 3 and answers on 4; high copies cannot be in the way of those.
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        high = [fcntl.fcntl(one, fcntl.F_DUPFD, 100) for one in (theirs_in, theirs_out)]

        def place():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self._process = subprocess.Popen(
            [
                path,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--disable-background-networking",
                "--host-resolver-rules=MAP * ~NOTFOUND",
                "--remote-debugging-pipe",
                f"--user-data-dir={self._profile.name}",
                "about:blank",
            ],
            pass_fds=(3, 4),
            preexec_fn=place,  # noqa: PLW1509  (nothing but system calls)
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for one in (theirs_in, theirs_out, *high):
            os.close(one)
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        """Send a command and wait for its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        answer = self._wait(lambda one: one.get("id") == self._number)
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, url):
        """Go to a page and wait until it is loaded."""
        self.call("Page.navigate", url=url)
        if not any(one.get("method") == "Page.loadEventFired" for one in self.events):
            self._wait(lambda one: one.get("method") == "Page.loadEventFired")

    def run(self, script):
        """The value of an expression on the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def window(self, width, height, *, dark=False, mobile=False):
        """The size of the window, and what the reader prefers."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def of(self, method):
        """The parameters of all events of a kind."""
        return [one["params"] for one in self.events if one.get("method") == method]

    def _wait(self, wanted):
        end = time.monotonic() + self.seconds
        while True:
            while b"\0" in self._buffer:
                text, _, self._buffer = self._buffer.partition(b"\0")
                message = json.loads(text)
                if "id" not in message:
                    self.events.append(message)
                if wanted(message):
                    return message
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            content = os.read(self._in, 1 << 20) if ready else b""
            assert content, "the browser does not answer"
            self._buffer += content

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()
