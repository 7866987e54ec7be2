"""DiLoCo in one process with PyTorch alone, for the sites of the example, and rounding of 16-bit values.

python_oracle.py diloco EXAMPLE SITES ROUNDS EVERY MOMENTUM TEXT FOLDER...: prints the loss of each site and
round, and how far the models in the folders are from the oracle's, relative to what training changed.
python_oracle.py masters COORDINATOR: trains a bf16 parameter by tiny steps at one site; prints the shared
values after each round, and those of the formula in float64.
"""

import importlib.util
import json
import sys
from pathlib import Path

import torch


def diloco(example: str, sites: int, rounds: int, every: int, momentum: float, text: str,
           folders: list[str]) -> dict:
    """torch.optim.SGD takes the outer steps, with the mean delta as the gradient."""
    spec = importlib.util.spec_from_file_location("example", example)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    theta = module.make_model()
    start = [parameter.detach().clone() for parameter in theta.parameters()]
    outer = torch.optim.SGD(theta.parameters(), lr=0.7, momentum=momentum, nesterov=True)
    models = [module.make_model() for _ in range(sites)]
    inner = [torch.optim.AdamW(model.parameters(), lr=3e-3) for model in models]
    data = [module.batches(Path(text).read_bytes(), site, sites) for site in range(sites)]
    losses = []
    for _ in range(rounds):
        losses.append([])
        for model, optimizer, batches in zip(models, inner, data):
            model.load_state_dict(theta.state_dict())
            sums = [module.inner_step(model, optimizer, next(batches)) for _ in range(every)]
            losses[-1].append(sum(sums) / every)
        for parameter, *local in zip(theta.parameters(), *(model.parameters() for model in models)):
            parameter.grad = sum(parameter.detach() - own.detach() for own in local) / sites
        outer.step()
    distances = []
    for folder in folders:
        model = module.LlamaForCausalLM.from_pretrained(folder)
        off = sum((own - other).double().square().sum()
                  for own, other in zip(model.parameters(), theta.parameters()))
        moved = sum((own - other).double().square().sum() for own, other in zip(start, theta.parameters()))
        distances.append((off / moved).sqrt().item())
    return {"losses": losses, "distances": distances}


def masters(coordinator: str) -> list:
    """Half of the values never change; the others by less than a rounded sum would show."""
    import farstep
    parameter = torch.nn.Parameter(torch.linspace(0.5, 4, 64).to(torch.bfloat16).view(8, 8).t())
    frozen = torch.arange(64).view(8, 8) % 2 == 0
    expected = parameter.detach().double()
    lines = []
    with farstep.OuterOptimizer([parameter], run="one", sites=["one"], site="one", host=True,
                                coordinator=coordinator, address="127.0.0.1", every=1,
                                learning_rate=0.3, momentum=0) as outer:
        for _ in range(6):
            before = parameter.detach().clone()
            with torch.no_grad():
                parameter.mul_(torch.where(frozen, 1.0, 1.01))
            expected += 0.3 * (parameter.detach().double() - before.double())
            outer.step()
            shared = outer.state_dict()["values"]
            lines.append({"shared": shared.tolist(), "expected": expected.flatten().tolist(),
                          "rounded": bool(torch.equal(parameter.flatten(), shared.bfloat16()))})
    return lines


def main():
    """One of the two."""
    torch.set_num_threads(1)
    if sys.argv[1] == "masters":
        print(json.dumps(masters(sys.argv[2])))
        return
    example, sites, rounds, every, momentum, text, *folders = sys.argv[2:]
    print(json.dumps(diloco(example, int(sites), int(rounds), int(every), float(momentum), text, folders)))


if __name__ == "__main__":
    main()
