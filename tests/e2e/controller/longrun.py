"""
An MPI program that runs for a while, as an MPI job that a test can wait for.

Runs in the workers, under their Python: standard library and the MPI library only. Its ranks reduce over all of
them ten times a second, and wait for each other without taking a processor. The first attempt takes long. One
that finds a trace of an earlier one on any worker, which the ranks agree on by a reduction, may be over sooner: a
test sees by what it says that the job was run again.
"""

from __future__ import annotations


def source(*, first: float = 180.0, again: float = 0.0, last: float = 0.0) -> str:
    """The program, whose attempts take so many seconds; its ranks leave MPI `last` seconds before their end."""
    return _SOURCE.replace("AGAIN", str(again)).replace("FIRST", str(first)).replace("LAST", str(last))


_SOURCE = """
import ctypes, os, socket, time

def handle(name):
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))
try:
    mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
    world, integer, largest, total = map(
        handle, ("ompi_mpi_comm_world", "ompi_mpi_int", "ompi_mpi_op_max", "ompi_mpi_op_sum"))
    ignored = None
except OSError:
    # MPICH, whose handles are numbers.
    mpi = ctypes.CDLL("libmpich.so.12", mode=ctypes.RTLD_GLOBAL)
    world, integer, largest, total = 0x44000000, 0x4C000405, 0x58000001, 0x58000003
    ignored = ctypes.c_void_p(1)
def over_all(value, how):
    mine, found, request, done = ctypes.c_int(value), ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
    mpi.MPI_Iallreduce(ctypes.byref(mine), ctypes.byref(found), 1, integer, how, world, ctypes.byref(request))
    while not done.value:
        time.sleep(0.01)
        mpi.MPI_Test(ctypes.byref(request), ctypes.byref(done), ignored)
    return found.value

trace, host = "/tmp/was-here", socket.gethostname()
mpi.MPI_Init(None, None)
again = over_all(os.path.exists(trace), largest)
open(trace, "w").close()
print(f"{host} runs {'again' if again else 'first'}", flush=True)
until, ranks = time.monotonic() + (AGAIN if again else FIRST), over_all(1, total)
while over_all(time.monotonic() < until, largest):
    time.sleep(0.1)
mpi.MPI_Finalize()
time.sleep(LAST)
print(f"{host} is one of {ranks}", flush=True)
"""
