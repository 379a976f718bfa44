"""A policy in a process of its own: it shares neither interpreter nor priority with the stage."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import ConfigError, PolicyError
from kv_action_router.synthesis.policy import ChunkPolicy, Observation

_READY_S = 60.0  # a large network takes its time to load
_END_S = 2.0


def load_policy(name: str) -> ChunkPolicy:
    """Return what a factory ``package.module:function`` makes.

    Raises:
        ConfigError: naming what is missing.
    """
    module_name, _, function = name.partition(":")
    if not module_name or not function:
        raise ConfigError("policy", "package.module:function", name)
    try:
        factory = getattr(importlib.import_module(module_name), function)
    except (ImportError, AttributeError) as error:
        raise ConfigError("policy", f"a function that can be imported ({error})", name) from error
    policy: ChunkPolicy = factory()
    for attribute in ("act", "period"):
        if not hasattr(policy, attribute):
            raise ConfigError("policy", f"a policy with {attribute!r}", type(policy).__name__)
    return policy


class PolicyProcess:
    """An ``Asker`` whose policy runs in a child process with normal scheduling.

    Invariant: an answer belongs to the newest question; answers to older ones are thrown away.

    Attributes:
        period: of the policy's actions [s].
    """

    def __init__(self, name: str) -> None:
        """Start the child and wait until its policy is loaded.

        Raises:
            ConfigError: the policy could not be made, with the child's reason.
        """
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._child = context.Process(target=_serve, args=(name, theirs), daemon=True)
        self._child.start()
        theirs.close()
        self._asked = self._answered = 0
        try:
            if not self._pipe.poll(_READY_S):
                raise ConfigError("policy", f"ready within {_READY_S:g} s", name)
            ready, told = self._pipe.recv()
        except (EOFError, OSError) as error:
            self.close()
            raise ConfigError("policy", "a policy whose process lives", name) from error
        except ConfigError:
            self.close()
            raise
        if not ready:
            self.close()
            raise ConfigError("policy", f"one that can be made ({told})", name)
        self.period = float(told)

    def ask(self, observation: Observation) -> None:
        """Put a question; the child takes it when it has answered the one before."""
        self._asked += 1
        try:
            self._pipe.send((self._asked, observation))
        except OSError as error:
            raise PolicyError(f"the policy's process has ended ({error})") from error

    def answer(self) -> FloatArray | None:
        """Return the actions of the newest question once they are there, else None, at once."""
        try:
            while self._answered < self._asked and self._pipe.poll():
                self._answered, actions, wrong = self._pipe.recv()
                if self._answered == self._asked:
                    if wrong:
                        raise PolicyError(f"the policy failed: {wrong}")
                    result: FloatArray = actions
                    return result
        except (EOFError, OSError) as error:
            raise PolicyError("the policy's process has ended") from error
        if not self._child.is_alive():
            raise PolicyError(f"the policy's process has ended with code {self._child.exitcode}")
        return None

    def close(self) -> None:
        """End the child."""
        self._pipe.close()
        self._child.join(_END_S)
        if self._child.is_alive():
            self._child.kill()
            self._child.join()


def _serve(name: str, pipe: Connection) -> None:
    """Answer questions until the other end is closed."""
    with suppress(OSError):  # the parent's real-time priority is not for this
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    try:
        policy = load_policy(name)
    except Exception as error:
        pipe.send((False, f"{type(error).__name__}: {error}"))
        return
    pipe.send((True, policy.period))
    while True:
        try:
            number, observation = pipe.recv()
            while pipe.poll():  # a newer question makes this one void
                number, observation = pipe.recv()
        except (EOFError, OSError):
            return
        pipe.send((number, *_act(policy, observation)))


def _act(policy: ChunkPolicy, observation: Observation) -> tuple[Any, str]:
    try:
        return policy.act(observation), ""
    except Exception as error:
        traceback.print_exc()
        return None, f"{type(error).__name__}: {error}"
