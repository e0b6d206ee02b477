class MultiheadAttention: pass
