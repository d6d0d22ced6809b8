"""Print a case as a transcript for `checkstream replay`.

Example:
    python -m tests.transcripts stop-phrase-chat-stream > run.jsonl
    checkstream replay run.jsonl --policy tests/transcripts/corpus/stop-phrase-chat-stream/policy.yaml
"""

from __future__ import annotations

import argparse
import sys

from tests.transcripts.case import CORPUS, CUTS, Case


def main() -> None:
    """Read the command line, play the case and print its run."""
    parser = argparse.ArgumentParser(prog="python -m tests.transcripts", description="Print a case as a transcript.")
    parser.add_argument("case", metavar="CASE", choices=sorted(path.name for path in CORPUS.iterdir()))
    parser.add_argument("--cut", choices=CUTS, default="whole", help="how the upstream's bytes are cut")
    args = parser.parse_args()
    case = Case(CORPUS / args.case)
    sys.stdout.buffer.write(case.play(case.plan(), args.cut)[1])


if __name__ == "__main__":
    main()
