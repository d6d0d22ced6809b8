"""The tables of evidence in PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkstream.evidence.columns import facts

if TYPE_CHECKING:
    from psycopg import AsyncConnection

LOCK = 0x63_68_65_76
"""Of advisory locks: one process makes the tables, and one at a time writes a document."""
_TABLES = """
create extension if not exists vector;
create schema if not exists checkstream;
create table if not exists checkstream.meta(key text primary key, value text not null);
create table if not exists checkstream.documents(
  source text primary key, digest text not null, chunks integer not null, terms bigint not null
);
create sequence if not exists checkstream.numbers;
create table if not exists checkstream.chunks(
  number bigint primary key, id text not null unique, source text not null,
  text text not null, headings text not null, first integer not null, last integer not null,
  embedding vector({dimensions})
);
do $$ begin
  if {dimensions} <= 1500 and exists (select from pg_attribute where attrelid = 'checkstream.chunks'::regclass
                                      and attname = 'embedding' and attstorage <> 'p') then
    alter table checkstream.chunks alter column embedding set storage plain;
  end if;
end $$;
create index if not exists chunks_by_source on checkstream.chunks(source);
create table if not exists checkstream.postings(
  term text collate "C" not null, chunk bigint not null references checkstream.chunks on delete cascade,
  times integer not null, terms integer not null, primary key(term, chunk) include (times, terms)
);
create index if not exists postings_by_chunk on checkstream.postings(chunk);
do $$ begin
  if to_regclass('checkstream.vectors') is null then
    create table checkstream.vectors(
      chunk bigint primary key references checkstream.chunks on delete cascade, rough halfvec({dimensions}) not null
    );
    if {dimensions} <= 3000 then
      alter table checkstream.vectors alter column rough set storage plain;
    end if;
    insert into checkstream.vectors select number, embedding from checkstream.chunks where embedding is not null;
  end if;
end $$;
"""
"""Vectors stand in the rows themselves as long as a page holds them: all the rough ones are read for each search."""


async def make_tables(connection: AsyncConnection[tuple[Any, ...]], embedder: str, dimensions: int) -> None:
    """Make the tables where there are none, and what says whose vectors are in them."""
    own = list(facts(embedder, dimensions).items())
    async with connection.transaction(), connection.cursor() as cursor:
        await cursor.execute("select pg_advisory_xact_lock(%s)", (LOCK,))
        await cursor.execute(_TABLES.format(dimensions=int(dimensions)).encode())
        await cursor.executemany("insert into checkstream.meta values(%s, %s) on conflict do nothing", own)
