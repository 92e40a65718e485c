"""A page in headless Chromium, driven through a pipe by the DevTools protocol, and a server of a folder for it."""

import contextlib
import functools
import http.server
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_message: Any) -> None:
        """Do not print requests."""


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of the files of `folder`."""
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Browser:
    """A browser with one page, which notes the faults of the pages that it opens."""

    def __init__(self, profile: Path):
        read, write = os.pipe(), os.pipe()

        def as_three_and_four() -> None:
            os.dup2(read[0], 3)
            os.dup2(write[1], 4)

        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        command += [f"--user-data-dir={profile}", "about:blank"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, preexec_fn=as_three_and_four, pass_fds=(3, 4), **quiet)
        os.close(read[0])
        os.close(write[1])
        self.input, self.output = os.fdopen(read[1], "wb"), os.fdopen(write[0], "rb")
        self.sent, self.rest, self.session, self.faults = 0, b"", None, []
        self.loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log", "Network":
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.input.write(json.dumps(message).encode() + b"\0")
        self.input.flush()
        while (answer := self._next()).get("id") != self.sent:
            pass
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            more = os.read(self.output.fileno(), 1 << 20)
            assert more, "the browser has ended"
            self.rest += more
        text, _, self.rest = self.rest.partition(b"\0")
        message = json.loads(text)
        found = message.get("params", {})
        match message.get("method"):
            case "Page.loadEventFired":
                self.loaded = True
            case "Runtime.exceptionThrown":
                self.faults.append(str(found["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if found["type"] in ("error", "assert"):
                self.faults.append(str(found["args"]))
            case "Log.entryAdded" if found["entry"]["level"] == "error":
                where = found["entry"].get("url", "")
                # A browser may ask for this file before it has read which icon the page names.
                self.faults += [] if where.endswith("/favicon.ico") else [f"{found['entry']['text']} {where}"]
            case "Network.requestWillBeSent" if not found["request"]["url"].startswith(("http://127.0.0.1:", "data:")):
                self.faults.append("fetches " + found["request"]["url"])
        return message

    def open(self, address: str) -> None:
        """Open a page and wait until all of it is loaded."""
        self.loaded, self.faults = False, []
        self.call("Page.navigate", url=address)
        while not self.loaded:
            self._next()

    def value(self, script: str) -> Any:
        """The value of an expression in the page; of a promise, the value that it resolves to."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def window(self, width: int, height: int, dark: bool = False) -> None:
        """Set the size of the window, a telephone's if it is narrow, and the colours that the reader prefers."""
        phone = width < 600
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        colours = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=colours)

    def close(self) -> None:
        """End the browser."""
        self.process.terminate()
        self.process.wait()
        self.input.close()
        self.output.close()
