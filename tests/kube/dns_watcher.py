"""
The process that keeps dnsmasq's names true: it follows all Endpoints and writes them as a hosts file.

Run by dns.py, as `python -m tests.kube.dns_watcher`.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterable, Mapping
from typing import Any

import urllib3
from kubernetes import client, config, watch

from tests.kube import daemons, dns

# The server ends a watch after this long, and the watcher lists anew: no half-open connection outlives it.
_WATCH_SECONDS = 300

Known = dict[tuple[str, str], Mapping[str, Any]]


def main() -> None:
    """Follow all Endpoints for ever, and tell dnsmasq of every change."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    log = logging.getLogger("dns")
    config.load_kube_config(str(dns.KUBECONFIG))
    core = client.CoreV1Api()
    while True:
        try:
            _follow(core)
        except (client.ApiException, urllib3.exceptions.HTTPError, OSError) as error:
            log.info("the watch ended: %s", error)
            # The API server is away: a fault a test makes. Nothing to watch for, so ask again soon.
            signal.sigtimedwait([], 0.5)


def _follow(core: client.CoreV1Api) -> None:
    known: Known = {}
    listed = core.list_endpoints_for_all_namespaces()
    plain = core.api_client.sanitize_for_serialization
    for endpoints in listed.items:
        _remember(known, plain(endpoints))
    _publish(known.values())
    stream = watch.Watch().stream(
        core.list_endpoints_for_all_namespaces,
        resource_version=listed.metadata.resource_version if listed.metadata else None,
        timeout_seconds=_WATCH_SECONDS,
        _request_timeout=_WATCH_SECONDS + 10,
    )
    for event in stream:
        item = event["raw_object"]
        if event["type"] == "DELETED":
            known.pop((item["metadata"]["namespace"], item["metadata"]["name"]), None)
        else:
            _remember(known, item)
        _publish(known.values())


def _remember(known: Known, item: Mapping[str, Any]) -> None:
    known[item["metadata"]["namespace"], item["metadata"]["name"]] = item


def _publish(endpoints: Iterable[Mapping[str, Any]]) -> None:
    text = dns.render(endpoints)
    if text == dns.HOSTS.read_text():
        return
    fresh = dns.HOSTS.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(dns.HOSTS)
    server = daemons.pid_of(dns.SERVER)
    if server:
        os.kill(server, signal.SIGHUP)


if __name__ == "__main__":
    main()
