"""The one table of entity examples: (entity, text, the spans that are found). All values are made up.

Values in `[[...]]` are the expected spans; the markers are not part of the text. Check digits are computed here by
means of their own, and secrets are put together from pieces, so that no forge's scanner takes them for real.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import string
import zlib
from typing import NamedTuple


class Example(NamedTuple):
    entity: str
    text: str
    spans: tuple[tuple[int, int], ...]


def marked(entity: str, text: str) -> Example:
    """Read `text` with its expected spans in double square brackets."""
    plain, spans = "", []
    for piece in text.split("[[")[0:1]:
        plain += piece
    for piece in text.split("[[")[1:]:
        value, _, rest = piece.partition("]]")
        spans.append((len(plain), len(plain) + len(value)))
        plain += value + rest
    return Example(entity, plain, tuple(spans))


_dice = random.Random(20240607)


def chars(count: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    """Return random characters with at least one digit, the same in every run."""
    while True:
        text = "".join(_dice.choice(alphabet) for _ in range(count))
        if any(char.isdigit() for char in text):
            return text


def luhn_digit(digits: str) -> str:
    for last in "0123456789":
        total = sum(sum(divmod(int(d) * (2 if i % 2 else 1), 10)) for i, d in enumerate(reversed(digits + last)))
        if total % 10 == 0:
            return last
    raise AssertionError


def card(prefix: str, size: int) -> str:
    body = (prefix + "2718281828459045235")[: size - 1]
    return body + luhn_digit(body)


def wrong_last(digits: str) -> str:
    return digits[:-1] + str((int(digits[-1]) + 1) % 10)


def hidden(text: str) -> str:
    return "".join(chr(0xE0000 + ord(char)) for char in text)


def fours(text: str, gap: str = " ") -> str:
    return gap.join(text[i : i + 4] for i in range(0, len(text), 4))


def iban(country: str, bban: str) -> str:
    number = int("".join(str(int(char, 36)) for char in bban + country + "00"))
    return f"{country}{98 - number % 97:02d}{bban}"


def nhs(nine: str) -> str:
    check = (11 - sum(int(d) * w for d, w in zip(nine, range(10, 1, -1), strict=True)) % 11) % 11
    assert check != 10
    return nine + str(check)


def steuer_id(ten: str) -> str:
    product = 10
    for digit in ten:
        total = (int(digit) + product) % 10
        product = 2 * (total or 10) % 11
    return ten + str((11 - product) % 10)


def ausweis(nine: str) -> str:
    return nine + str(sum(int(char, 36) * (7, 3, 1)[i % 3] for i, char in enumerate(nine)) % 10)


def nir(number: str) -> str:
    value = int(number.replace("2A", "19").replace("2B", "18"))
    return f"{number}{97 - value % 97:02d}"


def dni(number: int) -> str:
    return f"{number:08d}" + "TRWAGMYFPDXBNJZSQVHLCKE"[number % 23]


def nie(letter: str, seven: str) -> str:
    return letter + seven + "TRWAGMYFPDXBNJZSQVHLCKE"[int(str("XYZ".index(letter)) + seven) % 23]


_ODD = dict(zip(string.digits, (1, 0, 5, 7, 9, 13, 15, 17, 19, 21), strict=True)) | dict(
    zip(
        string.ascii_uppercase,
        (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
        strict=True,
    )
)


def codice(first15: str) -> str:
    even = {**{d: int(d) for d in string.digits}, **{c: i for i, c in enumerate(string.ascii_uppercase)}}
    total = sum(_ODD[c] if i % 2 == 0 else even[c] for i, c in enumerate(first15))
    return first15 + string.ascii_uppercase[total % 26]


def aba(eight: str) -> str:
    total = sum(int(d) * w for d, w in zip(eight, (3, 7, 1, 3, 7, 1, 3, 7), strict=True))
    return eight + str(-total % 10)


_B58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def base58(version: int, seed: bytes) -> str:
    payload = bytes([version]) + hashlib.sha256(seed).digest()[:20]
    data = payload + hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4]
    number, out = int.from_bytes(data, "big"), ""
    while number:
        number, rest = divmod(number, 58)
        out = _B58[rest] + out
    return "1" * (len(data) - len(data.lstrip(b"\0"))) + out


def github(prefix: str, thirty: str) -> str:
    number, check = zlib.crc32(thirty.encode()), ""
    digits = string.digits + string.ascii_uppercase + string.ascii_lowercase
    while number:
        number, rest = divmod(number, 62)
        check = digits[rest] + check
    return prefix + "_" + thirty + check.rjust(6, "0")


def b64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def jwt(header: dict[str, str], payload: dict[str, str] | None = None, signature: str | None = None) -> str:
    parts = [b64url(json.dumps(part).encode()) for part in (header, payload or {"sub": "1234567890"})]
    return ".".join([*parts, b64url(hashlib.sha256(b"x").digest()) if signature is None else signature])


def der(head: bytes, size: int, line: str = "\n") -> str:
    """Return base64, in lines, of octets that begin so."""
    octets = head + hashlib.shake_128(head).digest(size)
    text = base64.b64encode(octets).decode()
    return line.join(text[at : at + 64] for at in range(0, len(text), 64))


BARE_RSA = der(bytes.fromhex("308204bd020100300d06092a864886f70d0101010500"), 300)
BARE_EC = der(bytes.fromhex("30770201010420"), 114, "")
BARE_ED = der(bytes.fromhex("302e020100300506032b657004220420"), 32)
CERTIFICATE = der(bytes.fromhex("3082030d308201f5a003020102"), 200)
PUBLIC_KEY = der(bytes.fromhex("30820122300d06092a864886f70d01010105000382010f00"), 200)


def pem(kind: str, lines: int = 4, newline: str = "\n") -> str:
    body = newline.join(chars(64) for _ in range(lines))
    return f"-----BEGIN {kind}-----{newline}{body}{newline}-----END {kind}-----"


VISA, MASTER, AMEX = card("4539", 16), card("5425", 16), card("378", 15)
DE_IBAN, GB_IBAN = iban("DE", "370400440532013000"), iban("GB", "NWBK60161331926819")
FR_IBAN, MT_IBAN, NO_IBAN = (
    iban("FR", "20041010050500013M02606"),
    iban("MT", "MALT011000012345MTLCAST001S"),
    iban("NO", "86011117947"),
)
CARD_LIKE_IBAN = iban("DE", card("4408", 16) + "64")
PHONE_LIKE_IBAN = iban("PL", "163001268034758923244997")
CF = codice("RSSMRA85T10A562")
OMOCODIA = codice("RSSMRA85T10A5SN")
ETH_MIXED = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"  # a test vector of EIP-55
SEGWIT = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"  # a test vector of BIP-173
TAPROOT = "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0"  # a test vector of BIP-350
GHP = github("ghp", chars(30))
NPM = github("npm", chars(30))
AWS_ID = "AK" + "IA" + chars(16, string.ascii_uppercase + "234567")
AWS_SECRET = chars(38, string.ascii_letters + string.digits + "/+") + "aB"
GOOGLE = "AI" + "za" + chars(35)
STORAGE = base64.b64encode(hashlib.sha512(b"storage").digest()).decode()
SIGNATURE = base64.b64encode(hashlib.sha256(b"sas").digest()).decode()
JWS = jwt({"alg": "HS256", "typ": "JWT"})
BASIC = base64.b64encode(b"aladdin:opensesame1").decode()
ENCRYPTED_PEM = pem("RSA PRIVATE KEY", 5).replace(
    "KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\n", 1
)
HEX40 = hashlib.sha1(b"key").hexdigest()

_TABLE: dict[str, list[str]] = {
    "EMAIL": [
        "Write to [[anna.b+news@example.co.uk]].",
        "<[[x@y.io]]>, [[a_b-c@sub.example.museum]]",
        "Mail: [[josé.garcía@correo.es]] oder [[info@müller-bäckerei.de]]",
        "\u0440\u0443: [[\u0438\u0432\u0430\u043d@\u043f\u043e\u0447\u0442\u0430.\u0440\u0444]]!",
        "[[user@xn--bcher-kva.xn--p1ai]]",
        "[[zhang@\u4f8b\u5b50.\u5e7f\u544a]]\u3002",
        "\u8bf7\u53d1\u90ae\u4ef6\u81f3[[abc@def.com]]\u8c22\u8c22",
        "'[[o'neil@example.org]]' said",
        "mailto:[[a@b.de]]?subject=x",
        "[[jane [at] example [dot] org]] please",
        "[[john(at)example.com]]",
        "https://x.y/?mail=[[john%40example.com]]&z",
        "[[first.last@example.com]], [[second@example.com]];[[third@example.com]]",
        "a@b",
        "foo@bar.c",
        "logo@2x.png and @mention and me@",
        "x..y@.com",
        "npm i @scope/pkg@1.2.3",
        "user@localhost",
        "git@host:path",
        "double@@example.com",
        "name@-bad-.com",
        "[[john @ example.com]] or [[john@ example.com]] or [[john@\n> example.com]]",
        '"john [[doe"@example.com]], [[john\u2800@example.com]]',
        "y = x @ self.weights + b @ w.mT; meet us @ example.com, thanks @alice.example.social",
    ],
    "PHONE_LOOSE": [
        "_[[4155552671]]_",
        "call [[4155552671]], or [[415.555.2671]]",
        "[[+44 20 7946 0958]] or [[07700900123]]",
        "[[0301234567]]; [[13812345678]]; [[612345678]]; [[9876543210]]",
        "between [[555-0143]] and [[22 05 66 95]]",
        "at 1718000000 and 1234567890",
        "1 000 000 and 12.345.678 of 2024-01-15",
        "order number 4155552671",
        "192.168.100.200",
        "id 12345678, 415555267",
    ],
    "HIDDEN_TEXT": [
        f"hi[[{hidden('Ignore all')}]] there",
        f"\U0001f600[[{''.join(chr(0xE0100 + ord(char) - 16) for char in 'Ignore')}]]",
        f"\U0001f3f4{hidden('gbeng')}\U000e007f, \U0001f3f4[[{hidden('ustx')}\U000e007f]]",
        f"\U0001f3f4{hidden('gbsct')}\U000e007f[[{hidden('x')}]]",
        "a[[\u200b\u200c\u200b\u200c]]b and [[\u202e]]cba",
        "a[[\ufe01]]b",
        "\u2764\ufe0f \U0001f469\u200d\u2764\ufe0f\u200d\U0001f468 1\ufe0f\u20e3",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 soft\u00adhyphen \u845b\U000e0100",
        "\ufeffplain \u2066isolated\u2069",
    ],
    "URL": [
        "See [[https://example.com/a(b)?c=d#e]]. Or <[[http://localhost:8080/x]]>,",
        "([[www.example.org]]) and [[docs.example.io/start]]!",
        "[[example.com]]; [[ftp://192.0.2.1/f]], [[https://b\u00fccher.example/\u00e4]]",
        "[a]([[https://example.com/x]]) **[[https://y.example/z]]**",
        "write to mail@example.com or a.b.com@example.com",
        "main.py, self.name, e.g. this... and 1.2.3",
        "http:// and https://",
    ],
    "PHONE": [
        "Call [[+1 (202) 555-0143]] now",
        "[[(202) 555-0143]] or [[202-555-0143]] or [[202.555.0143]]",
        "[[1-800-555-0199]]",
        "[[+44 20 7946 0958]], [[020 7946 0958]], [[07700 900123]]",
        "[[+44 (0)20 7946 0958]]",
        "[[0044 20 7946 0958]]",
        "[[+49 30 901820]] Berlin",
        "[[+491711234567]]",
        "Tel. [[030/901820-12]]",
        "[[+33 6 12 34 56 78]] ou [[06 12 34 56 78]] ou [[06.12.34.56.78]]",
        "[[+34 612 345 678]]",
        "Móvil: [[612 345 678]]",
        "[[+39 06 1234 5678]]",
        "[[+81 3-1234-5678]]",
        "[[090-1234-5678]]",
        "\u7535\u8bdd\uff1a[[13812345678]]\u3002",
        "[[+86 138 1234 5678]]",
        "[[+91 98765 43210]]",
        "[[+55 (11) 91234-5678]]",
        "[[+971 50 123 4567]]",
        "[[(11) 91234-5678]]",
        "phone: [[5552345678]]",
        "my number, call [[555-2345]]",
        "[[+1 202 555 0143 ext. 12]] please",
        "[[202-555-0143 x89]]",
        "ring [[610 987 1597]] or [[415 555 2671]] [[212 555 0198]]",
        "1 2 3 [[610 987 1597]]; 101 [[415 555 2671]]; 700 800 [[415 555 2671]]",
        "55 89 144 233 377 610 987 1597 2584 4181 6765",
        "sizes 256 512 1024 2048 4096 and 233 377 610 987 1597",
        "480\t640\t800\t1024\t1280",
        "[[+1-202-555-0143]] [[+1-202-555-0199]]",
        "tel:[[+12025550143]]",
        "(mobile: [[0412 345 678]])",
        "Phone[[+1 202 555 0143]] again",
        "94105 [[415-243-4364]]",
        "Bishop (2006) 210-213",
        "from 2019-2020 to 2021",
        "on 2024-01-15 at 10:30, 01/02/2003",
        "ISBN 978-3-16-148410-0 and 0-306-40615-2",
        "version 1.2.3.4567.89",
        "call 192.168.100.200",
        "1234567890",
        "3.14159265358979",
        "the years 1990 1991 1992 1993",
        "SSN 123-45-6789",
        "+999 12 345 6789",
        "+1 202 555",
        "order number 202-555-0143",
        "Your ticket is ready; ask John, [[202-555-0143]]",
        "rooms 101 102 103 104",
        "$202-555-0143",
        "code A202-555-0143",
        "4539 2718 2818 2846",
        "phone 12345",
        "Her contact: [[+1 034-609-239]], a digit short",
        "+1 34-609-239",
        "+1 034 609",
        "[[854.820.6162x13004]] and [[(667)333-0861x8478]]",
        "reach me at [[5551234567]]",
        "peace was reached at last; ticket 5551234567",
        "Meine Handynummer ist [[03509987879]].",
        "Min mobil \u00e4r [[08-06 14 68]], telefon: [[22 056 66 95]]",
        "phone 192.168.100.200",
        "Metformin (NDC-0591-3740-01), NDC 0591-3740-01",
        "met 04-16-58-73-76-0c.",
        "EAN 0082947225685",
        "2252 0187 0037 3098, 3706 066988 18453",
        "from 94105 to [[0187 0037 3098]]",
        f"{fours(PHONE_LIKE_IBAN)}",
        "room DE1 [[0126 8034 7589]]",
    ],
    "US_SSN": [
        "SSN: [[536-22-8745]]",
        "[[536-22-8745]],[[899-01-0001]]",
        "ssn [[536 22 8745]] and social security number [[536228746]]",
        "Social_Security: [[001-01-0001]]",
        "000-12-3456",
        "666-12-3456",
        "[[900-12-3456]] and [[987-65-4321]], as test data is written",
        "_[[536-22-8745]]_ and __[[536-22-8745]]__, ssn: **[[536  22  8745]]**",
        "ssn [[536.22.8745]], ssn [[536_22_8745]]",
        "[[536.22.8745]] and 536  22  8745, a_[[536-22-8745]], [[536\u00b722\u00b78745]] or [[536_22_8745]]",
        "ssn [[536,22,8745]], ssn [[536\t22\t8745]], ssn [[536\n22\n8745]]",
        "/api/536/22/8745 and 536,22,8745\n536\t22\t8745",
        "part b536-22-8745 and 536-22-8745b",
        "ssn 900 12 3456",
        "ssn 987654321",
        "999-00-1234",
        "536-00-8745",
        "536-22-0000",
        "078-05-1120",
        "536228745",
        "536 22 8745",
        "1-536-22-8745",
        "536-22-87451",
        "536-22 8745 ssn",
        "SSN 111-11-1111",
        "SSN536x-22-8745",
    ],
    "US_ITIN": [
        "ITIN [[912-70-1234]]",
        "[[999-88-4321]]",
        "tax id [[912701234]]",
        "912-93-1234",
        "912-49-1234",
        "912-66-1234",
        "812-70-1234",
        "912701234",
        "912-70-12345",
    ],
    "UK_NINO": [
        "NI number [[AB123456C]]",
        "[[AB 12 34 56 C]] / [[JG-12-34-56-A]]",
        "[[ce123456d]]",
        "BG123456C",
        "DA123456C",
        "AO123456C",
        "AB123456E",
        "AB12345C",
        "XAB123456C",
        "AB123456CD",
        "TN123456A",
    ],
    "UK_NHS": [
        f"NHS number [[{nhs('943476591')}]]",
        "[[943 476 5919]]",
        "NHS: [[943-476-5919]]",
        "patient id [[9434765919]]",
        "943 476 5918",
        "9434765919",
        "phone 943 476 5919",
        "943-476-5919",
        "943 476 59191",
        "NHS 111 111 1111",
    ],
    "DE_ID": [
        f"Steuer-ID [[{steuer_id('8609574271')}]]",
        "[[{} {} {} {}]]".format(*(steuer_id("4703689281")[a:b] for a, b in ((0, 2), (2, 5), (5, 8), (8, 11)))),
        f"IdNr. [[{steuer_id('6592997048')}]]",
        f"Ausweis [[{ausweis('L01X00T47')}]]",
        f"Personalausweis: [[{ausweis('T22000129')}]]",
        f"[[{ausweis('LZ6311T47')}D]]",
        wrong_last(steuer_id("8609574271")),
        steuer_id("1234567890"),
        steuer_id("1112345678"),
        steuer_id("0609574271"),
        "+" + steuer_id("8609574271"),
        wrong_last(ausweis("L01X00T47")),
        ausweis("T22000129"),
        "X" + steuer_id("8609574271"),
    ],
    "FR_ID": [
        f"NIR [[{nir('1850578006084')}]]",
        "[[{} {} {} {} {} {} {}]]".format("1", "85", "05", "78", "006", "084", nir("1850578006084")[13:]),
        f"[[{nir('2690599350157')}]]",
        f"[[{nir('185052A006084')}]] Corse",
        f"[[{nir('285052B006084')}]]",
        wrong_last(nir("1850578006084")),
        nir("1851378006084"),
        nir("1850500006084"),
        nir("5850578006084"),
        nir("1850578006000"),
        nir("1850578006084") + "1",
        "1 85 05 78 006 084",
    ],
    "ES_ID": [
        f"DNI [[{dni(12345678)}]]",
        f"[[{dni(98765432)[:8]}-{dni(98765432)[8]}]]",
        f"dni [[{dni(12345678)[:8]} {dni(12345678)[8]}]]",
        f"[[12.345.678-{dni(12345678)[8]}]]",
        f"[[{dni(12345678).lower()}]]",
        f"NIE [[{nie('X', '1234567')}]] y [[{nie('Y', '7654321')}]] [[{nie('Z', '0000123')}]]",
        "12345678A",
        f"{dni(12345678)[:8]} {dni(12345678)[8]}",
        "X1234567A",
        dni(12345678) + "B",
        "1" + dni(12345678),
        "12345678I",
    ],
    "IT_ID": [
        f"CF: [[{CF}]]",
        f"[[{CF.lower()}]]",
        f"[[{codice('BNCLNE92D54H501')}]] e [[{OMOCODIA}]]",
        f"[[{CF[:3]} {CF[3:6]} {CF[6:11]} {CF[11:]}]]",
        CF[:15] + ("A" if CF[15] != "A" else "B"),
        codice("RSSMRA85T33A562"),
        codice("RSSMRA85T10A562")[:15],
        "X" + CF,
        CF + "1",
        codice("RSSMRA85T10A56B"),
    ],
    "CREDIT_CARD": [
        f"card [[{VISA}]]",
        f"[[{fours(VISA)}]] / [[{fours(MASTER, '-')}]]",
        f"[[{AMEX}]] [[{AMEX[:4]} {AMEX[4:10]} {AMEX[10:]}]]",
        f"[[{card('6011', 16)}]] [[{card('36', 14)}]] [[{card('3530', 16)}]]",
        f"[[{card('62', 19)}]] [[{card('2221', 16)}]]",
        f"[[{card('2204', 16)}]] [[{card('5018', 12)}]] [[{card('6304', 18)}]]",
        f"[[{card('5612', 12)}]] [[{card('6390', 12)}]] [[{card('0604', 13)}]] [[{fours(card('6759', 12))}]]",
        f"[[{card('2131', 15)}]] [[{card('1800', 15)}]]",
        card("4539", 12),
        f"\u5361\u53f7[[{VISA}]]\u3002",
        f"[[{fours(VISA)}]] 12 27",
        f"1 [[{fours(VISA)}]]",
        f"[[{fours(VISA)}]] [[{fours(MASTER)}]] [[{fours(card('4000', 16))}]]",
        wrong_last(VISA),
        card("9999", 16),
        card("4539", 15),
        card("2100", 16),
        f"[[{fours(VISA, '  ')}]] and [[{VISA[:4]} {VISA[4:8]}-{VISA[8:12]} {VISA[12:]}]]",
        f"[[{fours(VISA, '.')}]] or [[{fours(VISA, '/')}]] or [[{fours(VISA, ',')}]] or [[{fours(VISA, '_')}]]",
        "[[" + fours(VISA, "\t") + "]]\t12\t27",
        f"_[[{fours(VISA)}]]_ and __[[{VISA}]]__ and ***[[{VISA}]]***",
        f"[[{fours(VISA[:8])}\n{fours(VISA[8:])}]]",
        f"[[{fours(VISA, chr(10))}]] is told in lines",
        "1000\n" + fours(VISA, "\n") + "\n2000",
        f"id[[{fours(VISA)}]], secret_[[{fours(VISA, '-')}]], [[{fours(VISA)}]]x",
        f"id{fours(VISA, ',')}",
        f"[[{VISA[:5]} {VISA[5:10]} {VISA[10:]}]]; [[{' '.join(re.findall('..', VISA))}]]",
        f"[[{' '.join(re.findall('.{1,3}', VISA))}]]; {' '.join(re.findall('..', VISA))} 12",
        "40 41 42 43 44 45 46 "
        + next(f"{n}" for n in range(47, 99) if luhn_digit(f"404142434445464{n // 10}") == f"{n}"[1]),
        "1000\t" + fours(VISA, "\t"),
        fours(VISA, ",") + ",1000",
        f"x_{VISA}",
        f"{VISA[:3]} {VISA[3:]}",
        "0." + VISA,
        VISA + "1",
        "x" + VISA,
        VISA + "abc",
        "0000 0000 0000 0000",
        "1718000000000",
        "9780306406157",
        fours(CARD_LIKE_IBAN),
        f"{fours(CARD_LIKE_IBAN)} [[{fours(VISA)}]]",
        f"{CARD_LIKE_IBAN[:2]}00 [[{fours(CARD_LIKE_IBAN[4:20])}]] 64",
        f"room DE12 [[{fours(VISA)}]]",
    ],
    "IBAN": [
        f"IBAN [[{DE_IBAN}]]",
        f"[[{fours(DE_IBAN)}]], [[{fours(GB_IBAN)}]]",
        f"[[{FR_IBAN}]] [[{MT_IBAN}]]; [[{NO_IBAN}]].",
        f"[[{DE_IBAN.lower()}]]",
        f"[[{fours(NO_IBAN)}]] is mine now and then",
        f"[[{fours(DE_IBAN, '-')}]]",
        f"[[{fours(DE_IBAN, ',')}]]; [[{fours(DE_IBAN, chr(10))}]], [[{fours(DE_IBAN)}]]x",
        DE_IBAN + "x",
        f"[[{DE_IBAN}]],[[{GB_IBAN}]]",
        wrong_last(DE_IBAN),
        DE_IBAN[:-1],
        DE_IBAN + "1",
        "XX" + DE_IBAN[2:],
        "a" + DE_IBAN,
        "DE12 and then 1234 5678 9012 3456 78",
        "GB2024 WORD WORD WORD WORD",
    ],
    "IP_ADDRESS": [
        "host [[192.168.10.7]]:8080, [[8.8.8.8]]/32",
        "[[10.0.0.1]]. Then",
        "[[2001:db8:85a3:0:0:8a2e:370:7334]]",
        "[[2001:db8::1]], [[fe80::1%eth0]] and [[::1]]",
        "[[::ffff:192.0.2.128]]",
        "[[2001:db8::]]/32 [[64:ff9b::192.0.2.33]]",
        "[[1:2:3:4:5:6:7::]]",
        "at [[2001:DB8::8:800:200C:417A]]: it",
        "([[2001:db8::9]])/",
        "1.2.3.4.5",
        "v1.2.3.4",
        "version 1.2.3.4 of",
        "256.1.1.1",
        "01.2.3.4",
        "1.2.3",
        "see section 1.2.3.4",
        "mask 255.255.255.0 and 0.0.0.0",
        "std::vector<int> a::b Face::Add ::",
        "12:30:45",
        "rows[1::2], rows[10::20], x[::-1]",
        "00:1a:2b:3c:4d:5e",
        "2001:db8::1::2",
        "1:2:3:4:5:6:7:8:9",
        "12345::abcd",
        "Chrome/91.0.4472.124",
    ],
    "MAC_ADDRESS": [
        "[[00:1A:2b:3c:4D:5e]] and [[00-1A-2B-3C-4D-5E]].",
        "[[001a.2b3c.4d5e]]",
        "eui [[00:1a:2b:ff:fe:3c:4d:5e]]",
        "mac=[[de:ad:be:ef:00:01]]: up",
        "00:1a:2b:3c:4d",
        "00:1a-2b:3c-4d:5e",
        "00:1a:2b:3c:4d:5g",
        "x00:1a:2b:3c:4d:5e",
        "SHA1 00:1a:2b:3c:4d:5e:6f:70:81:92:a3:b4:c5:d6:e7:f8:09:1a:2b:3c",
        "1234.5678.9012",
        "00:1a:2b:3c:4d:5e:6f",
    ],
    "URL_CREDENTIALS": [
        "[[https://bob:s3cr3t@example.com]]/path",
        "clone [[git+ssh://u:p%40ss@git.example.org:22]]/x.git",
        "[[ftp://anonymous:me@host]]",
        "[[redis://:hunter22@10.0.0.5:6379]]",
        "https://example.com/a@b",
        "https://bob@example.com",
        "https://bob:${PASSWORD}@example.com",
        "https://user:<password>@example.com",
        "https://user:****@example.com",
        "https://example.com:443/x?y=a@b",
        "mailto:bob@example.com",
    ],
    "CRYPTO_WALLET": [
        f"BTC [[{base58(0, b'a')}]] or [[{base58(5, b'b')}]]",
        f"[[{SEGWIT}]], [[{SEGWIT.upper()}]]",
        f"[[{TAPROOT}]].",
        f"[[{ETH_MIXED}]] [[{ETH_MIXED.lower()}]]",
        f"[[{base58(0x30, b'c')}]] [[{base58(0x1E, b'd')}]] [[{base58(0x41, b'e')}]]",
        base58(0, b"a")[:-1] + ("2" if base58(0, b"a")[-1] != "2" else "3"),
        base58(9, b"a"),
        SEGWIT[:-1] + "5",
        SEGWIT[:-2] + SEGWIT[-2:].upper(),
        TAPROOT[:-1] + "q",
        ETH_MIXED[:-1] + "D",
        ETH_MIXED + "ab",
        "0x" + "0" * 40,
        "0x" + HEX40[:39],
        "x" + base58(0, b"a"),
    ],
    "PASSPORT": [
        "Passport number: [[C01X00T47]]",
        "passport no. [[533380006]]",
        "Reisepass [[C4VH1234N]]",
        "pasaporte: [[AAB123456]]",
        'passportNumber": "[[AB1234567]]"',
        "\u62a4\u7167\u53f7\u7801[[E12345678]]",
        "number C01X00T47",
        "passport expires 20301231",
        "the passport. Invoice 533380006",
        "passport office",
        "passport and account 533380006",
        "Passport 12",
    ],
    "DRIVER_LICENSE": [
        "Driver's license: [[D1234567]]",
        "driving licence [[MORGA753116SM9IJ]]",
        "DL# [[S123-456-78-901]]",
        "driver license number [[D123-4567-8901]]",
        "Führerschein [[B072RRE2I55]]",
        "permis de conduire n° [[880192310097]]",
        "DL: [[K12-34-5678]]",
        "[[DL-T10045-45]] on file",
        "D1234567",
        "license to D1234567",
        "driver's license, order 12345678",
        "driver's license 1234",
        "driver licence. He owes 12345678",
    ],
    "DATE_OF_BIRTH": [
        "DOB: [[1985-11-28]]",
        "date of birth [[06/14/2001]]",
        "born on [[March 3rd, 1990]] in Rome",
        "geboren am [[12. März 1975]]",
        "né le [[3 mai 1968]]",
        "fecha de nacimiento: [[5 de junio de 1992]]",
        "nato il [[29/02/1996]]",
        "\u751f\u5e74\u6708\u65e5\uff1a[[1980\u5e744\u67085\u65e5]]",
        "d.o.b. [[12-Jan-1970]]",
        "birthday is [[12/31/85]]",
        "date_of_birth=[[19850412]]",
        "What's your date of birth?\nA: [[1940-12-22]]",
        "data urodzenia: [[12 marca 1975]], f\u00f6delsedatum [[3 augusti 1980]]",
        "data urodzenia: 31 listopada 1980",
        "DOB: 1985-02-30",
        "DOB: 29/02/1995",
        "DOB: 13/13/1990",
        "1985-11-28",
        "born on March 14, 1879",
        "birthday party on the 3rd",
        "admitted on 1985-11-28",
        "DOB: [[1985-11-28]] admitted 2024-01-02",
        "DOB unknown. Seen 2024-01-02",
        "DOB: [[1985-11-28]]\n2024-01-02",
    ],
    "BANK_ACCOUNT": [
        "Account number: [[12345678]]",
        "acct # [[000123456789]]",
        "Kontonummer [[0532013000]]",
        "account [[10174967]]",
        "account no. [[1234 5678 9012]]",
        "\u53e3\u5ea7\u756a\u53f7 [[1234567]]",
        "12345678",
        "into account the many facts of 12345678",
        "account number 12345",
        "account number 11111111",
        "order 12345678",
        "account closed, invoice 12345678",
        "account number 123456789012345678",
    ],
    "SORT_CODE": [
        "Sort code: [[12-34-56]]",
        "sort code [[20 30 40]]",
        "BSB [[062-000]]",
        "BLZ [[37040044]]",
        f"routing number: [[{aba('02100002')}]]",
        f"ABA [[{aba('12200066')}]]",
        "12-34-56",
        f"routing number {wrong_last(aba('02100002'))}",
        "sort code 12-34-567",
        "sort code 12345",
        aba("02100002"),
    ],
    "MEDICAL_RECORD_NUMBER": [
        "MRN: [[1234567]]",
        "([[MRN-9764209]])",
        "medical record number [[A123456]]",
        "Patient ID: [[PT-004512]]",
        'patientId: "[[00981234]]"',
        "Krankenakte [[778899]]",
        "National health id: [[NH-910585]]",
        "a health idea 910585",
        "MRN 123",
        "number 1234567",
        "MRN pending, phone 5551234567",
        "MRN: 00000000",
        "MRNA-1273 vaccine",
    ],
    "AWS_ACCESS_KEY": [
        f"[[{AWS_ID}]], _[[{AWS_ID}]]_, __[[{AWS_ID}]]__",
        f"[[{'AS' + 'IA' + AWS_ID[4:]}]];",
        f"aws_secret_access_key = [[{AWS_SECRET}]]",
        f'AWS_SECRET_ACCESS_KEY="[[{AWS_SECRET}]]"',
        f'{{"SecretAccessKey": "[[{AWS_SECRET}]]"}}',
        AWS_ID[:-1],
        AWS_ID + "A",
        "X" + AWS_ID,
        f"x[[{AWS_ID}]], secret_[[{AWS_ID}]], id[[{AWS_ID}]]x and key[[{AWS_ID}]]_old",
        f"abcdefghij{AWS_ID}ABCDEFGHIJ{AWS_SECRET}",
        AWS_SECRET,
        f"aws secret commit {HEX40}",
        f"aws_secret_access_key = {AWS_SECRET}A",
        f"aws_secret_access_key = {'x' * 40}",
    ],
    "GCP_KEY": [
        f"[[{GOOGLE}]]",
        f"?key=[[{GOOGLE}]]&x",
        f"id[[{GOOGLE}]] secret_[[{GOOGLE}]]",
        f"[[{'GOC' + 'SPX-' + chars(28)}]]",
        f"[[{'ya' + '29.' + chars(60)}]]",
        f'"private_key_id": "[[{HEX40}]]"',
        GOOGLE[:-1],
        GOOGLE + "a",
        "commit " + HEX40,
        "AI" + "za" + "x" * 35,
    ],
    "AZURE_KEY": [
        f"AccountKey=[[{STORAGE}]];EndpointSuffix=core.windows.net",
        f"azure storage key: [[{STORAGE}]]",
        f"?sv=2022-11-02&sig=[[{SIGNATURE}]]",
        f"?sv=2022-11-02&sig=[[{SIGNATURE[:-1]}%3D]]&se=x",
        f"SharedAccessKey=[[{SIGNATURE}]]",
        f"client secret [[{'Abc' + '8Q~' + chars(34)}]]",
        STORAGE,
        f"integrity sha512-{STORAGE}",
        f"AccountKey={'x' * 86}==",
        "AccountKey=short==",
    ],
    "GITHUB_TOKEN": [
        f"[[{GHP}]]",
        f"token=[[{github('gho', chars(30))}]], [[{github('ghs', chars(30))}]] [[{github('ghr', chars(30))}]]",
        f"https://[[{github('ghu', chars(30))}]]@github.com",
        f"[[{github('ghp', 'a' * 30)}]]",
        f"[[{'ghp' + '_' + chars(36)}]]",
        f"[[{'github' + '_pat_' + chars(22) + '_' + chars(59)}]]",
        "ghp" + "_" + "x" * 36,
        "ghp" + "_" + "YOUR" + "a" * 32,
        GHP[:-1],
        f"[[{GHP + 'a'}]]",
        f"x[[{GHP}]] and secret_[[{GHP}]]",
        "ghq" + GHP[3:],
    ],
    "GITLAB_TOKEN": [
        f"[[{'gl' + 'pat-' + chars(20)}]]",
        f"[[{'gl' + 'rt-' + chars(20)}]]; [[{'GR13' + '48941' + chars(20)}]]",
        f"[[{'gl' + 'pat-' + chars(27) + '.01.' + '0w1a2b3c4'}]]",
        "gl" + "pat-" + "x" * 20,
        "gl" + "pat-" + chars(19),
        "gl" + "pat-your-token-goes-in-here",
    ],
    "SLACK_TOKEN": [
        f"[[{'xo' + 'xb-' + '123456789012-1234567890123-' + chars(24)}]]",
        f"[[{'xo' + 'xp-' + '1234567890-' + chars(32)}]].",
        f"[[{'xa' + 'pp-1-A0123456789-1234567890123-' + chars(64, 'abcdef0123456789')}]]",
        f"[[https://hooks.slack.com/services/T0AB12CD3/B0EF45GH6/{chars(24)}]]",
        "xo" + "xb-your-token-here",
        "https://hooks.slack.com/services/T00000000/B00000000/" + "X" * 24,
        "https://hooks.slack.com/services/",
        "box" + "b-1234567890-abcdefgh",
    ],
    "STRIPE_KEY": [
        f"[[{'sk' + '_live_' + chars(24)}]]",
        f"[[{'rk' + '_test_' + chars(99)}]]",
        f"[[{'wh' + 'sec_' + chars(32)}]]",
        "pk" + "_live_" + chars(24),
        "sk" + "_live_" + "x" * 24,
        "sk" + "_test_short1",
        "task" + "_live_" + chars(24),
    ],
    "OPENAI_KEY": [
        f"[[{'sk' + '-' + chars(48)}]]",
        f"key: [[{'sk' + '-proj-' + chars(120)}]].",
        f"[[{'sk' + '-svcacct-' + chars(60)}]]",
        "sk" + "-your-api-key-goes-here-1234",
        "sk" + "-" + "x" * 48,
        "task" + "-" + chars(48),
        "sk" + "-ant-" + chars(40),
        "sk" + "-learn-is-a-fine-library-too",
    ],
    "ANTHROPIC_KEY": [
        f"[[{'sk' + '-ant-' + 'api03-' + chars(93) + 'AA'}]]",
        f"x-api-key: [[{'sk' + '-ant-' + 'admin01-' + chars(80)}]]",
        "sk" + "-ant-" + "api03-" + "x" * 90,
        "sk" + "-ant-" + "short1",
        "sk" + "-" + chars(48),
    ],
    "HUGGINGFACE_TOKEN": [
        f"[[{'hf' + '_' + chars(34)}]]",
        f"[[{'api' + '_org_' + chars(34)}]]",
        "hf" + "_" + "x" * 34,
        "hf" + "_" + chars(20),
        "shf" + "_" + chars(34),
        "hf" + "_" + chars(45),
    ],
    "NPM_TOKEN": [
        f"[[{NPM}]]",
        f"_authToken=[[{'npm' + '_' + chars(36)}]]",
        "npm" + "_" + "x" * 36,
        "npm" + "_config_registry",
        f"[[{NPM + 'a'}]] and id[[{NPM}]]",
        NPM[:-1],
    ],
    "PYPI_TOKEN": [
        f"[[{'pypi' + '-AgEIcHlwaS5vcmc' + chars(120)}]]",
        f"password = [[{'pypi' + '-AgENdGVzdC5weXBpLm9yZw' + chars(100)}]]",
        "pypi" + "-AgE" + "x" * 60,
        "pypi" + "-AgEIcHlwaS5vcmc",
        "pypi-server",
    ],
    "JWT": [
        f"[[{JWS}]]",
        f"Bearer [[{JWS}]].",
        f"token=[[{jwt({'alg': 'ES256'})}]]&x",
        f"[[{jwt({'alg': 'dir', 'enc': 'A256GCM'})}.{chars(20)}.{chars(22)}]]",
        jwt({"typ": "JWT"}),
        jwt({"alg": ""}),
        "eyJhbGc...",
        "eyJub3QganNvbg.eyJub3QganNvbg.abcdef",
        "x" + JWS,
        b64url(b'{"alg": "HS256"}'),
    ],
    "PRIVATE_KEY": [
        f"[[{pem('PRIVATE KEY')}]]",
        f"key:\n[[{pem('RSA PRIVATE KEY', 8)}]]\nend",
        f"[[{pem('OPENSSH PRIVATE KEY')}]]",
        f'"private_key": "[[{pem("PRIVATE KEY", 3, chr(92) + "n")}]]"',
        f"[[{pem('EC PRIVATE KEY', 2, chr(13) + chr(10))}]]",
        f"[[{pem('PRIVATE KEY').partition('-----END')[0].rstrip()}]]",
        f"[[{ENCRYPTED_PEM}]]",
        f"[[{pem('PGP PRIVATE KEY BLOCK')}]]",
        f"> [[{pem('PRIVATE KEY', 3, chr(10) + '> ')}]]",
        f"# [[{pem('PRIVATE KEY', 3, chr(10) + '# ')}]]",
        f"| [[{pem('PRIVATE KEY', 3, ' |' + chr(10) + '| ')}]] |",
        f" 1: [[{pem('RSA PRIVATE KEY', 3, chr(10) + ' 2: ')}]]",
        f'key = "[[{pem("EC PRIVATE KEY", 3, chr(92) + "n" + chr(34) + " +" + chr(10) + "    " + chr(34))}]]"',
        f'["[[{pem("PRIVATE KEY", 3, chr(34) + ", " + chr(34))}]]"]',
        f"echo '[[{pem('PRIVATE KEY', 3, chr(39) + ' >> k' + chr(10) + 'echo ' + chr(39))}]]'",
        f"(b'[[{pem('PRIVATE KEY', 3, chr(39) + chr(10) + ' b' + chr(39))}]]')",
        f"[[{pem('PRIVATE KEY', 3, '<br>')}]]",
        f"[[{pem('Private Key', 3).replace('BEGIN', 'Begin')}]]",
        f"[[{pem('PRIVATE KEY', 3).replace('-----', '----').replace('----BEGIN', '---- BEGIN')}]]",
        "-----BEGIN PRIVATE KEY----- stands in front; see https://example.com/docs/security/privatekeysandmore",
        "-----BEGIN PRIVATE KEY----- is how it begins",
        "-----BEGIN PRIVATE KEY-----\nMIIE...\n-----END PRIVATE KEY-----",
        f"[[{pem('PRIVATE KEY').replace(' ', '_')}]]",
        f"[[{pem('EC PRIVATE KEY').replace(' ', '-')}]]",
        f"the key is [[{BARE_RSA}]]\n-----END",
        f"> [[{BARE_RSA.replace(chr(10), chr(10) + '> ')}]] and that is it",
        f"[[{BARE_EC}]]; and another that is shorter: [[{BARE_ED}]]",
        f"x{BARE_EC} and {CERTIFICATE} and {PUBLIC_KEY}",
        pem("PUBLIC KEY"),
        pem("CERTIFICATE"),
    ],
    "AUTHORIZATION": [
        f"Authorization: Bearer [[{chars(40)}]]",
        f"-H 'Authorization: Basic [[{BASIC}]]'",
        f'"authorization": "token [[{chars(40)}]]"',
        f"Bearer [[{chars(40)}]]",
        "Proxy-Authorization: Basic [[dXNlcjpwYXNzd29yZDE=]]",
        "a bearer certificate, basic understanding",
        "Authorization: Bearer <token>",
        "Authorization: Bearer YOUR_TOKEN_HERE",
        "Authorization: Bearer $TOKEN",
        "bearer securities1",
    ],
    "CONNECTION_STRING": [
        "[[postgres://app:s3cr3tpw@db.example.com:5432/main]]",
        "DATABASE_URL=[[postgresql+asyncpg://app:s3cr3tpw@db/main?ssl=1]]",
        "[[mongodb+srv://u:p4ssw0rd@cluster0.ab1cd.mongodb.net/?retryWrites=true]]",
        '"[[redis://:hunter22@cache:6379/0]]"',
        "[[amqps://svc:k9Jd83hf@mq.example.com/vhost]].",
        "[[Server=tcp:db.example.com,1433;Database=main;User ID=sa;Password=Str0ngPw1;Encrypt=True;]]",
        "[[DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=abc123==;EndpointSuffix=core.windows.net]]",
        "postgres://localhost:5432/main",
        "postgres://app@db/main",
        "postgres://app:${DB_PASSWORD}@db/main",
        "postgres://app:<password>@db/main",
        "mongodb://user:****@host/db",
        "Server=db;Database=main;Trusted_Connection=True;",
        "server=db;password={your_password};",
        "https://a:b1@c.de",
    ],
    "GENERIC_SECRET": [
        "password = [[hunter2!x]]",
        "password: [[Tr0ub4dor&3]].",
        'DB_PASS="[[N63JKOzNPVjG%zP]]"',
        f"api_key: '[[{chars(32)}]]'",
        f'"clientSecret": "[[{chars(24)}]]"',
        f"--token [[{chars(30)}]]",
        "IDENTIFIED BY '[[uq!WnP%24M]]'",
        "The password is [[S3cure-Pa55]]",
        f"export GITLAB_SECRET_TOKEN=[[{chars(26)}]]",
        "Passwort: [[Gehe1m!s]]",
        "\u5bc6\u7801: [[abc12345]]",
        '{\\"password\\": \\"[[q7EVQZ1bmwGk]]\\"}',
        "Password: **[[Xy7!kkP9]]**",
        "password = <your-password>",
        "password = ${DB_PASSWORD}",
        "password: xxxxxxxx",
        "password = changeme123",
        "password = os.environ[PW1]",
        "token = get_token(1)",
        "The password is incorrect",
        "password: required",
        "compass: N45E1289x",
        "token: short1",
        'secret = "placeholder_value_1"',
        "username = hunter2!x",
        "key point: remember2024things",
        "api_key = self.config.api_key1",
        "secret: aaaaaaaaaaaaaaaa1",
        "url: https://example.com/token=abc",
    ],
}

EXAMPLES: tuple[Example, ...] = tuple(marked(entity, text) for entity, texts in _TABLE.items() for text in texts)
"""Every example, in the table's order. An example without spans must find nothing."""
