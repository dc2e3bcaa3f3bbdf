"""Each problem of a machine, in the words that a person reads."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from testbed.kube import preflight
from testbed.kube.aptsources import Entry
from testbed.kube.errors import ClusterError
from testbed.kube.preflight import GB, Listener, Problem

BOOKWORM = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_ID="12"\n'
BULLSEYE = 'PRETTY_NAME="Debian GNU/Linux 11 (bullseye)"\nID=debian\nVERSION_ID="11"\n'
SID = 'PRETTY_NAME="Debian GNU/Linux forky/sid"\nID=debian\n'
FEDORA = 'NAME="Fedora Linux"\nPRETTY_NAME="Fedora Linux 42"\nID=fedora\nVERSION_ID=42\n'
APT_TOOLS = ("apt-get", "dpkg")

DEBIAN_REMEDY = (
    "run on Debian 12 or later (x86_64 or aarch64), "
    "or set MPIRT_TEST_KUBECONFIG to test against a cluster that you have"
)


class TestReport:
    def test_no_problem_raises_nothing(self) -> None:
        preflight.report([None, None])

    def test_a_problem_is_an_error_with_its_remedy(self) -> None:
        with pytest.raises(ClusterError) as caught:
            preflight.report([None, Problem("the disk is full", "free some space")])

        assert str(caught.value) == "the disk is full\n  free some space"

    def test_several_problems_are_told_at_once(self) -> None:
        problems = [Problem("the disk is full", "free some space"), None, Problem("no root", "use sudo")]

        with pytest.raises(ClusterError) as caught:
            preflight.report(problems)

        assert str(caught.value) == (
            "2 things keep the cluster from starting:\n"
            "  - the disk is full\n    free some space\n"
            "  - no root\n    use sudo"
        )


class TestRoot:
    def test_root_is_fine(self) -> None:
        assert preflight.root_problem(0) is None

    def test_another_user_is_told_of_the_way_without_root(self) -> None:
        assert preflight.root_problem(1000) == Problem(
            "a cluster on this machine needs root",
            "run as root, or set MPIRT_TEST_KUBECONFIG to test against a cluster that you have",
        )


class TestDebian:
    @pytest.mark.parametrize("text", [BOOKWORM, SID], ids=["bookworm", "a suite without a number"])
    @pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
    def test_debian_is_fine(self, text: str, machine: str) -> None:
        assert preflight.debian_problem(text, machine, APT_TOOLS) is None

    @pytest.mark.parametrize(
        ("text", "machine", "tools", "what"),
        [
            pytest.param(FEDORA, "x86_64", (), "Fedora Linux 42, without apt-get and dpkg", id="no apt"),
            pytest.param(FEDORA, "x86_64", ("dpkg",), "Fedora Linux 42, without apt-get", id="dpkg alone"),
            pytest.param("", "x86_64", (), "a system without a name, without apt-get and dpkg", id="no name"),
            pytest.param(BOOKWORM, "riscv64", APT_TOOLS, "a riscv64 machine", id="another kind of machine"),
            pytest.param(
                BULLSEYE, "x86_64", APT_TOOLS, "Debian GNU/Linux 11 (bullseye), which is too old", id="too old"
            ),
        ],
    )
    def test_another_system_is_named(self, text: str, machine: str, tools: tuple[str, ...], what: str) -> None:
        assert preflight.debian_problem(text, machine, tools) == Problem(f"this is {what}", DEBIAN_REMEDY)


class TestDisk:
    REMEDY = "free some space there; for the cache, XDG_CACHE_HOME can name another place"

    @pytest.mark.parametrize(
        ("fresh", "needed", "free", "what"),
        [
            (True, 12 * GB, 11_940_000_000, "only 11.9 GB free at /cache; a first run needs 12 GB"),
            (False, 2 * GB, 1_500_000_000, "only 1.5 GB free at /cache; a run needs 2 GB"),
        ],
        ids=["a first run", "a later run"],
    )
    def test_a_run_needs_room(self, *, fresh: bool, needed: int, free: int, what: str) -> None:
        assert preflight.disk_problem(Path("/cache"), needed, fresh=fresh) is None
        assert preflight.disk_problem(Path("/cache"), free, fresh=fresh) == Problem(what, self.REMEDY)


class TestSources:
    REMEDY = "add a Debian mirror to apt's sources (deb URI bookworm main), run apt-get update, and start again"

    def test_a_debian_archive_is_fine(self) -> None:
        entry = Entry("http://mirror.example/debian/", "bookworm", "main", "Debian")

        assert preflight.source_problem([entry]) is None

    @pytest.mark.parametrize(
        ("entries", "named"),
        [
            ([Entry("https://node.example/", "nodistro", "main", "Node")], "https://node.example/ nodistro main"),
            ([], "nothing"),
        ],
        ids=["another archive", "no archive"],
    )
    def test_other_sources_of_apt_are_named(self, entries: list[Entry], named: str) -> None:
        assert preflight.source_problem(entries) == Problem(
            f"apt is configured without a Debian archive (it has: {named})", self.REMEDY
        )


class TestMemoryController:
    HEAD = "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t1\t1\t1\n"
    PROBLEM = Problem("the kernel has no memory controller for pods", "boot it with cgroup_enable=memory")

    @pytest.mark.parametrize(
        ("table", "controllers", "problem"),
        [
            pytest.param(HEAD + "memory\t4\t11\t1\n", "", None, id="in the table of version 1"),
            pytest.param(HEAD, "cpuset cpu io memory pids\n", None, id="in the list of version 2"),
            pytest.param(HEAD + "memory\t0\t1\t0\n", "", PROBLEM, id="switched off"),
            pytest.param("", "cpuset cpu hugetlb\n", PROBLEM, id="missing"),
        ],
    )
    def test_a_kernel_has_the_controller(self, table: str, controllers: str, problem: Problem | None) -> None:
        assert preflight.memory_problem(table, controllers) == problem


class TestFeatures:
    REMEDY = (
        "use a kernel that has them and a machine that lets root use them (not a container), "
        "or set MPIRT_TEST_KUBECONFIG to test against a cluster that you have"
    )

    @pytest.mark.parametrize(
        ("feature", "code", "output", "what"),
        [
            pytest.param("bridges", 0, "a warning\n", "", id="it worked"),
            pytest.param(
                "veth links",
                2,
                "modprobe: no module\nRTNETLINK answers: Operation not supported\n",
                "veth links can't be used here: RTNETLINK answers: Operation not supported",
                id="the last line says why",
            ),
            pytest.param(
                "iptables", 3, "", "iptables can't be used here: exit 3", id="the exit code, without a line"
            ),
        ],
    )
    def test_a_probe_that_failed_is_a_problem(self, feature: str, code: int, output: str, what: str) -> None:
        expected = Problem(what, self.REMEDY) if what else None

        assert preflight.feature_problem(feature, code, output) == expected


STREAM, DATAGRAM = socket.SOCK_STREAM, socket.SOCK_DGRAM


class TestPorts:
    ETCD = ("127.0.0.1", 2379, "etcd")
    ALL = ("0.0.0.0", 2379, "etcd")
    DNS = ("10.96.0.10", 53, "the cluster's DNS")

    @pytest.mark.parametrize(
        ("wanted", "listener", "holder"),
        [
            pytest.param(ETCD, Listener("127.0.0.1", 2380, STREAM), "", id="another port"),
            pytest.param(ETCD, Listener("127.0.0.2", 2379, STREAM), "", id="another address"),
            pytest.param(
                ETCD, Listener("127.0.0.1", 2379, STREAM, 123, "etcd"), "etcd (pid 123)", id="the address"
            ),
            pytest.param(ETCD, Listener("0.0.0.0", 2379, STREAM, 123, "etcd"), "etcd (pid 123)", id="all of IPv4"),
            pytest.param(ETCD, Listener("::", 2379, STREAM, 123, "etcd"), "etcd (pid 123)", id="all"),
            pytest.param(
                ALL, Listener("192.0.2.1", 2379, STREAM, 7, "haproxy"), "haproxy (pid 7)", id="any for all"
            ),
            pytest.param(ETCD, Listener("127.0.0.1", 2379, STREAM), "an unknown process", id="one that hides"),
            pytest.param(DNS, Listener("0.0.0.0", 53, DATAGRAM, 9, "unbound"), "unbound (pid 9)", id="a resolver"),
            pytest.param(ETCD, Listener("0.0.0.0", 2379, DATAGRAM, 10, "game"), "", id="datagrams"),
        ],
    )
    def test_the_process_that_holds_the_port_is_named(
        self, wanted: tuple[str, int, str], listener: Listener, holder: str
    ) -> None:
        address, port, purpose = wanted
        expected = Problem(
            f"port {port} on {address} is taken by {holder}",
            f"the cluster needs it for {purpose}: stop that process, then run again",
        )

        assert preflight.port_problem(wanted, [listener]) == (expected if holder else None)

    def test_a_real_listener_is_found(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            number = server.getsockname()[1]
            with pytest.raises(ClusterError) as caught:
                preflight.check_ports([("127.0.0.1", number, "a test")])

        assert caught.value.what.startswith(f"port {number} on 127.0.0.1 is taken by ")
        assert caught.value.what.endswith(f" (pid {os.getpid()})")
