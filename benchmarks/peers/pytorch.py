"""`torch.nn.Transformer` on the CPU, with sinusoidal positions and tied embeddings.

In contrast to the other peers it has another normalisation after the encoder and after the decoder,
4 D parameters.
"""

import math

import torch
from task import PAD_ID, Task
from torch import nn


def make(order):
    """Builds the model."""
    torch.set_num_threads(order["cores"])
    torch.set_num_interop_threads(order["cores"])
    torch.manual_seed(1)
    return Training(Task(**order["task"]), order["precision"])


class Translation(nn.Module):
    """Encoder-decoder model from token ids `[B, S]` and `[B, T]` to logits `[B, T, V]`."""

    def __init__(self, task):
        super().__init__()
        self.scale = math.sqrt(task.d_model)
        self.embedding = nn.Embedding(task.vocab_size, task.d_model)
        nn.init.normal_(self.embedding.weight, std=task.d_model**-0.5)
        self.dropout = nn.Dropout(task.dropout)
        self.transformer = nn.Transformer(
            task.d_model, task.num_heads, task.num_layers, task.num_layers, task.d_ff,
            task.dropout, batch_first=True,
        )  # fmt: skip
        for stack in (self.transformer.encoder, self.transformer.decoder):
            for layer in stack.layers:
                # The dropout inside the feed-forward network, which no other peer has.
                layer.dropout = nn.Identity()
        self.register_buffer("positions", _sinusoids(task.length, task.d_model))
        self.register_buffer(
            "future", torch.ones(task.length, task.length, dtype=torch.bool).triu(1)
        )  # True where attention is forbidden

    def forward(self, source, target):
        padding = source == PAD_ID  # [B, S], True where attention is forbidden
        length = target.shape[1]
        x = self.transformer(
            self._embedded(source),
            self._embedded(target),
            tgt_mask=self.future[:length, :length],
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )  # [B, T, D]
        return nn.functional.linear(x, self.embedding.weight)  # [B, T, V]

    def _embedded(self, tokens):
        return self.dropout(self.embedding(tokens) * self.scale + self.positions[: tokens.shape[1]])


class Training:
    """The model, its optimizer and one batch; see `keras_training.KerasTraining`."""

    def __init__(self, task, precision):
        self._task, self._precision = task, precision
        self._batch = [torch.from_numpy(side).long() for side in task.batch()]
        self.model = Translation(task)
        self._optimizer = torch.optim.Adam(
            self.model.parameters(), task.learning_rate, (0.9, 0.98), 1e-9, fused=True
        )
        self.metadata = {
            "parameters": sum(parameter.numel() for parameter in self.model.parameters())
        }

    def run(self, steps):
        """Trains `steps` steps; returns the mean of their losses."""
        total = torch.zeros(())
        for _ in range(steps):
            total += self._step()
        return {"loss": float(total) / steps}

    def _step(self):
        source, target, labels = self._batch
        self._optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=self._precision == "mixed_bfloat16"):
            logits = self.model(source, target)  # [B, T, V]
        loss = nn.functional.cross_entropy(
            logits.flatten(0, 1).float(),
            labels.flatten(),
            ignore_index=PAD_ID,
            label_smoothing=self._task.label_smoothing,
        )
        loss.backward()
        self._optimizer.step()
        return loss.detach()


def _sinusoids(length, d_model):
    position = torch.arange(length)[:, None]  # [T, 1]
    angles = position * 10_000.0 ** (-torch.arange(0, d_model, 2) / d_model)  # [T, D / 2]
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)  # [T, D]
