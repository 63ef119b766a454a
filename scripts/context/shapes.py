"""What the models of this folder have in common with the programs that time them, without torch."""

DECODER = dict(vocab_size=4096, hidden_size=768, intermediate_size=2048, num_hidden_layers=8, num_attention_heads=12, num_key_value_heads=4,
               tie_word_embeddings=False, bos_token_id=1, eos_token_id=2, pad_token_id=0)
TRAINED, WINDOW = 4096, 512
SHORT, LONG = [1 + 0.01 * i for i in range(32)], [1 + 0.5 * i for i in range(32)]
