"""Answers one SMT query as a solver on the command line would, for halmos: three solvers race, the first answer counts.

yices starts at once and answers most queries. bitwuzla works on bits too, but knows more about products; cvc5 works on integers
here, which suits divisions and inequalities. None answers in minutes what another is good at.

  python3 solve.py QUERY.smt2
"""

import queue
import shutil
import subprocess
import sys
import threading

import psutil


def bitwuzla(query: str) -> None:
    import bitwuzla

    options = bitwuzla.Options()
    options.set(bitwuzla.Option.PRODUCE_MODELS, True)
    bitwuzla.Parser(bitwuzla.TermManager(), options).parse(query)


def cvc5(query: str) -> None:
    import cvc5

    solver = cvc5.Solver()
    solver.setOption("produce-models", "true")
    solver.setOption("solve-bv-as-int", "sum")
    symbols = cvc5.SymbolManager(solver.getTermManager())
    parser = cvc5.InputParser(solver, symbols)
    parser.setFileInput(cvc5.InputLanguage.SMT_LIB_2_6, query)
    while not (command := parser.nextCommand()).isNull():
        print(command.invoke(solver, symbols), end="")


SOLVERS = {"bitwuzla": bitwuzla, "cvc5": cvc5}
# When each joins: once the one before has had so many seconds of a processor, since a solver that starts takes a core
# from the others. On a busy machine that takes longer, and does not bring more solvers.
STARTS = [("yices", 0.0), ("bitwuzla", 0.3), ("cvc5", 1.5)]
LOOK = 0.1
DEFINITE = ("sat", "unsat")


def command(solver: str, query: str) -> list[str]:
    if solver == "yices":
        return [shutil.which("yices-smt2") or "yices-smt2", "--smt2-model-format", "--bvconst-in-decimal", query]
    return [sys.executable, __file__, query, solver]


def spent(run: subprocess.Popen) -> float:
    """Seconds of a processor that a solver has had; without bound if it has ended."""
    try:
        times = psutil.Process(run.pid).cpu_times()
    except psutil.Error:
        return float("inf")
    return times.user + times.system


def race(query: str) -> str:
    """The output of whichever solver is first to say `sat` or `unsat`, or `unknown` if none does."""
    answers: queue.Queue[str] = queue.Queue()
    runs: list[subprocess.Popen] = []
    waiting = list(STARTS)
    answer, pending = "", 0
    while not answer.startswith(DEFINITE) and (waiting or pending):
        if waiting and (pending == 0 or spent(runs[-1]) >= waiting[0][1]):
            if len(runs) == 2:
                # Two cores are what there is; what yices does not answer at once it seldom answers at all.
                runs[0].kill()
            run = subprocess.Popen(
                command(waiting.pop(0)[0], query), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            threading.Thread(target=lambda r=run: answers.put(r.communicate()[0]), daemon=True).start()
            runs.append(run)
            pending += 1
        try:
            answer = answers.get(timeout=LOOK if waiting else None)
            pending -= 1
        except queue.Empty:
            pass
    for run in runs:
        run.kill()
    return answer if answer.startswith(DEFINITE) else "unknown\n"


if __name__ == "__main__":
    if len(sys.argv) == 3:
        SOLVERS[sys.argv[2]](sys.argv[1])
    else:
        print(race(sys.argv[1]), end="", flush=True)
