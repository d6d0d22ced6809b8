"""Finding patterns, phrases and entities in text that arrives in pieces.

`patterns` compiles, `scan` searches one channel; `syntax` and `tree` give each expression its companion,
`phrases` and `phrase_search` find literal phrases by their words (`shapes`), `escapes`, `normalise`, `markup`, `apart`,
`encoded` and `hidden` undo evasions, which `waking` looks out for; `chain` and `lane` hold what is still undecided, and
`decided` what waits for other views. Nothing outside this
package knows the regex engine.
"""
