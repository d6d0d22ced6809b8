"""OpenAI's older APIs (chat, completions, embeddings, moderations) and the rerank API, streamed and whole."""
