"""
A small PyTorch training on Horovod that goes on while workers come and go.

Rank 0 prints a line whenever a world of workers begins, and one a step:

    resumed=115 size=3 rank0=worker-1
    step=116 size=3 rank0=worker-1 committed=no loss=0.0427
    step=120 size=3 rank0=worker-1 committed=yes loss=0.0421

`committed=yes` is a promise: every worker holds this step, and no later event takes it back. `resumed` tells the
step that every worker holds at the beginning; what came after it is done again. It is the last committed one, or
one that was committed when a worker died before rank 0 could say so. With `touch /tmp/finish` in any worker,
training ends at the next commit.
"""

import argparse
import os
import queue
import socket
import stat
import time
from pathlib import Path

import horovod.torch as hvd
import torch
from horovod.common.elastic import run_fn
from horovod.common.exceptions import HostsUpdatedInterrupt
from horovod.runner.elastic.worker import HostUpdateResult

FINISH = Path("/tmp/finish")


def train(state, options):
    """Start, or go on after hosts came or went, from the step that `state` has."""
    say("resumed", state)
    while state.step < options.steps:
        loss = step_forward(state.model, options)
        state.step += 1
        if state.step % options.commit_every:
            report(state, loss, committed=False)
            continue
        commit(state, loss)
        if is_finished():
            return


def step_forward(model, options):
    """
    One batch of made-up data; the pause stands for the work of a real model.

    With torch.optim and hvd.DistributedOptimizer this would be two lines. But torch.optim takes 3 s of CPU time to
    import, in which the others wait for a worker that comes.
    """
    time.sleep(options.pause)
    inputs = torch.randn(options.batch_size, 16)
    loss = torch.nn.functional.mse_loss(model(inputs), inputs.sum(dim=1, keepdim=True))
    model.zero_grad()
    loss.backward()
    averages = hvd.grouped_allreduce([each.grad for each in model.parameters()], name="gradients")
    with torch.no_grad():
        for parameter, average in zip(model.parameters(), averages, strict=True):
            parameter.sub_(options.learning_rate * average)
    return loss.item()


def commit(state, loss):
    """Save on every worker, then see whether hosts came or went; that ends this world by an exception."""
    try:
        state.commit()
    except HostsUpdatedInterrupt:
        report(state, loss, committed=True)
        # When hosts have only gone, Horovod would not share the state again. But a host can come back in the
        # moment between, and would then wait for a state that nobody sends.
        raise HostsUpdatedInterrupt(skip_sync=False) from None
    report(state, loss, committed=True)


class State(hvd.elastic.TorchState):
    """What Horovod saves, restores and shares, in a world that is left and entered again."""

    def __init__(self, **parts):
        self._connections = enter_world()
        super().__init__(**parts)

    def restore(self):
        """
        What Horovod does first after an error, and one thing more.

        Who has met the error says good-bye to all others, who wait for this one now. Otherwise they might wait for
        each other until HOROVOD_GLOO_TIMEOUT_SECONDS are over: this one in hvd.shutdown() for their next word,
        they for this one's part of a sum.
        """
        hang_up(self._connections)
        super().restore()

    def leave_and_enter_world(self):
        """
        What hvd.elastic.run does, and one thing more.

        Horovod 0.28 leaves connections of its process sets open, even if this worker has met no error itself.
        Another that has, and waits for this one, would wait until HOROVOD_GLOO_TIMEOUT_SECONDS are over.
        """
        hvd.shutdown()
        hang_up(self._connections)
        self._host_messages = queue.Queue()
        self._connections = enter_world()

    def on_reset(self):
        """
        Keep the news of hosts that came while the world was entered; Horovod would throw them away for good.

        Not those of hosts that went: their workers are missed without them, and whoever dies while a world is
        entered takes all the others with him, so no world is entered needlessly.
        """
        came = [news for news in self._host_messages.queue if news[1] & HostUpdateResult.added]
        super().on_reset()
        for news in came:
            self._host_messages.put(news)


def enter_world():
    """Enter, and return the connections that this has opened."""
    before = open_sockets()
    hvd.init()
    return open_sockets() - before


def open_sockets():
    """File descriptor and inode of every socket of this process."""
    found = set()
    for path in Path("/proc/self/fd").iterdir():
        try:
            facts = os.fstat(int(path.name))
        except OSError:
            continue
        if stat.S_ISSOCK(facts.st_mode):
            found.add((int(path.name), facts.st_ino))
    return found


def hang_up(connections):
    """Shut those that are still the same ones; Gloo then closes them by itself."""
    for number, inode in connections:
        try:
            with socket.socket(fileno=os.dup(number)) as connection:
                if os.fstat(connection.fileno()).st_ino == inode:
                    connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            # It was closed in the meantime, or never connected.
            pass


def report(state, loss, *, committed):
    word = "yes" if committed else "no"
    say("step", state, f" committed={word} loss={loss:.4f}")


def say(what, state, more=""):
    """A line for all workers."""
    if hvd.rank() == 0:
        print(f"{what}={state.step} size={hvd.size()} rank0={socket.gethostname()}{more}", flush=True)


def is_finished():
    """Whether someone has said on any of the workers that it is enough; all of them hear it at the same step."""
    said = torch.tensor([float(FINISH.exists())])
    return bool(hvd.allreduce(said, op=hvd.Sum, name="finish").item())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--commit-every", type=int, default=5, metavar="STEPS")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=0.01)
    parser.add_argument("--pause", type=float, default=0.1, metavar="SECONDS")
    options = parser.parse_args()

    # All that takes long comes first: from the moment a worker enters the world, the others wait for it.
    torch.set_num_threads(1)
    model = torch.nn.Linear(16, 1)

    state = State(model=model, step=0)
    run_fn(train, state.leave_and_enter_world)(state, options)


if __name__ == "__main__":
    main()
