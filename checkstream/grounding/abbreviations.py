"""Words whose full stop ends no sentence: English, German, French, Spanish, Italian, and a few Russian ones.

Casefolded, without the last stop.
"""

from __future__ import annotations


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


NEVER_LAST = _words(
    "mr mrs ms dr prof hon gen col capt lt sgt maj adm gov sen rep messrs br supt insp e.g i.e cf vs viz figs "
    "eqs ed eds pp approx resp esp incl excl dept hr frl dipl ing bzw z.b d.h u.a o.g s.o s.u vgl zzgl evtl "
    "ggf sog geb inkl exkl abb bd hrsg mme mlle p.ex n.b sr sra srta dra p.ej ej dott avv г ул им стр см рис "
    "тыс т.е т.н"
)
"""A sentence goes on after these."""

BEFORE_NUMBER = _words(
    "no nos nr fig eq sec ch chap vol p pt art arts para paras par cl reg regs abs kap s tel max min núm pág "
    "págs ca v rev st version ver line step ext app"
)
"""A sentence goes on after these when a number follows."""

MAY_BE_LAST = _words(
    "inc ltd co corp llc plc bros jr sr esq ph.d m.d b.a m.a b.sc m.sc d.c u.s u.k u.n e.u u.s.a a.m p.m etc "
    "a.d b.c b.c.e c.e usw etc.pp u.s.w s.a s.l s.p.a gmbh e.v jan feb mar apr jun jul aug sep sept oct nov "
    "dec mon tue tues wed thu thurs fri sat sun т.д т.п руб млн млрд"
)
"""A sentence ends after these when the next word could open one."""

OPENERS = _words(
    "the a an it its he she they we you i this that these those there here in on at for from by with as if "
    "when while after before since because although however but and so then also our their his her my your no "
    "not all both each der die das ein eine es er sie wir ihr im am auf für von mit als wenn nach vor seit "
    "aber und dann auch le la les un une il elle ils elles nous vous ce cette ces dans en pour avec mais et el "
    "los las una ello ellos ella ellas este esta estos por con pero y"
)
"""Words that open a sentence far more often than they follow an initial."""

BEFORE_ORDINALS = _words("am der die das dem den des vom zum zur im seit bis ab und oder")
"""German words between which and a noun a number with a stop is an ordinal."""

MONTHS = _words(
    "januar februar märz april mai juni juli august september oktober november dezember jänner january "
    "february march may june july october december"
)
"""German and English; between a day with a stop and one of them no sentence ends."""
