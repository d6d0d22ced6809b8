"""Drafts of policies, each version of them, and the texts that they hold."""

from __future__ import annotations

from checkstream.control.server.migrations.change import Migration

FIRST = Migration(
    number=7,
    name="drafts",
    statements=(
        """create table drafts(
             id {id}, author text not null, stage text not null, made_ms {int} not null, changed_ms {int} not null,
             state text not null
           )""",
        "create index drafts_by_stage on drafts(stage, author)",
        """create table draft_versions(
             draft {int} not null, number {int} not null, digest text not null, files text not null, base text not null,
             who text not null, reason text not null, at_ms {int} not null, primary key(draft, number)
           )""",
        """create table draft_texts(
             draft {int} not null, digest text not null, content text not null, primary key(draft, digest)
           )""",
    ),
)
"""`draft_versions.files`: path -> digest, as JSON, of the draft's version; `base`: of the sources that it is held
against. A file without a text is as it stands in the sources."""
