"""A tiny model to start from: numbers in, two scores out. Put your own model into `load` and `forward`.

curl -d '{"values": [0.1, 0.2, 0.3]}' http://127.0.0.1:8080/function/NAME
"""

import gshare.errors
import gshare.handler
import msgspec
import torch

FEATURES = 3


class Input(msgspec.Struct):
    values: list[float]


class Handler(gshare.handler.Handler):
    def load(self, context):
        """Once, before the first request. `build` fills the module with the weights that MODEL_WEIGHTS names."""
        self.device = context.device.torch_device
        self.weights = context.weights.text
        self.model = context.build(lambda: torch.nn.Linear(FEATURES, 2))

    def example(self):
        """One item; the function is ready when `forward` has run on it."""
        return torch.zeros(FEATURES)

    def decode(self, request):
        """From the request to one item. Wrong JSON is answered with 400 and a text that says where."""
        values = request.json(Input).values
        if len(values) != FEATURES:
            raise gshare.errors.BadInput(f"values: {len(values)} numbers; exactly {FEATURES}")
        return torch.tensor(values)

    def forward(self, items):
        """Many items at once: requests that arrive together share one pass."""
        return self.model(torch.stack(items).to(self.device)).softmax(-1).cpu()

    def encode(self, output, request):
        """From one output to the reply; a dict becomes JSON."""
        return {"scores": output, "weights": self.weights}
