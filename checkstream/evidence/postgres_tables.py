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
  if to_regclass('checkstream.frequencies') is null then
    alter table checkstream.documents add column number bigint generated always as identity unique;
    create table checkstream.frequencies(
      term text collate "C" not null, chunks integer not null,
      document bigint not null references checkstream.documents(number) on delete cascade,
      primary key(term, document) include (chunks)
    );
    insert into checkstream.frequencies(term, document, chunks)
    select term, document.number, count(*) from checkstream.postings join checkstream.chunks on chunks.number = chunk
      join checkstream.documents as document using (source) group by term, document.number;
    create index frequencies_by_document on checkstream.frequencies(document);
  end if;
end $$;
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
"""How many chunks hold a term is counted by document: a word that most chunks hold is counted for each search that has
it, and there are far fewer documents than chunks. Vectors stand in the rows themselves as long as a page holds them:
all the rough ones are read for each search."""


async def make_tables(connection: AsyncConnection[tuple[Any, ...]], embedder: str, dimensions: int) -> None:
    """Make the tables where there are none, and what says whose vectors are in them."""
    own = list(facts(embedder, dimensions).items())
    async with connection.transaction(), connection.cursor() as cursor:
        await cursor.execute("select pg_advisory_xact_lock(%s)", (LOCK,))
        await cursor.execute(_TABLES.format(dimensions=int(dimensions)).encode())
        await cursor.executemany("insert into checkstream.meta values(%s, %s) on conflict do nothing", own)
