"""Long campaigns (`make slow`): kills at random moments, writes that fail one after the other, ten hours in minutes.

What they do to the studio they do in processes of their own, forked from a server that has imported torch already.
"""


def tell(what: str) -> None:
    """Figures for whoever runs a campaign with -s."""
    print(f"\n{what}")  # noqa: T201
