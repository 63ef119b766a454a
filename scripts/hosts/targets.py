"""The cases as --target onnx and --target contrib wrote them, in Python's onnxruntime without the op library or in
OpenVINO.

    targets.py CASES onnxruntime|openvino

GroupQueryAttention knows no padding on the left: a call with it must end with the error that the rewrite put in, and
counts as right then. OpenVINO takes the node apart for a batch of one, which has no padded calls.
"""
import sys

import numpy as np

from cases import PAST, Host, OwnFault, read_all

GUARDS = ("the mask hides a token", "a position is not the index of its token")

def main(cases, name):
    host_of = {"onnxruntime": Runtime, "openvino": OpenVINO}[name]
    failed = 0
    for target in "onnx", "contrib":
        host = Host(f"{host_of.version()} --target {target}")
        for case in read_all(cases):
            host.check(case, lambda case: (run(host_of, case, target), None), lambda case: host_of(case.original), real=True)
        failed += host.failed
    sys.exit(1 if failed else 0)


def run(host_of, case, target):
    """The outputs of the calls, None for those that are refused as they must be."""
    path = case.target(target)
    if target == "contrib":
        host_of.suits(case, case.targets[target]["needs"])
    model, outputs = host_of(path), []
    for call in case.calls:
        if target == "contrib" and padded(call["inputs"]):
            refuses(model, call["inputs"])
            outputs.append(None)
        else:
            outputs.append(model.run(call["inputs"]))
    return outputs


def padded(inputs):
    return not np.all(inputs.get("attention_mask", 1))


def refuses(model, inputs):
    if model.batch == 1:
        return
    try:
        model.run(inputs)
    except Exception as error:
        if any(guard in str(error) for guard in GUARDS):
            return
        raise
    raise RuntimeError("a padded row is computed without a word")


class Runtime:
    batch = None  # any

    def __init__(self, path):
        import ort
        self.session = ort.session(path)
        self.names = [o.name for o in self.session.get_outputs()]

    @staticmethod
    def version():
        import onnxruntime
        return f"onnxruntime {onnxruntime.__version__}"

    @staticmethod
    def suits(_case, needs):
        """Older versions compute chunks and windows otherwise; the rewrite says which it needs."""
        import onnxruntime
        if int(onnxruntime.__version__.split(".")[1]) < needs:
            raise OwnFault(f"the model needs ONNX Runtime 1.{needs}, as the rewrite says")

    def run(self, inputs):
        return dict(zip(self.names, self.session.run(None, inputs)))


class OpenVINO:
    batch = 1

    def __init__(self, path):
        import openvino
        self.model = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})

    @staticmethod
    def version():
        import openvino
        return f"openvino {openvino.__version__.split('-')[0]}"

    @staticmethod
    def suits(case, _needs):
        """The versions are ONNX Runtime's."""
        if not any(name.startswith(PAST) for name in case.calls[0]["inputs"]):
            raise OwnFault("its frontend wants a cache")
        if any(value.shape[2] for name, value in case.calls[0]["inputs"].items() if name.startswith(PAST)):
            raise OwnFault("it gives back the rows that hold tokens in place of the whole buffer; its logits are right")

    def run(self, inputs):
        named = {}
        for output, value in self.model(inputs).to_dict().items():
            named |= dict.fromkeys(output.names, value)
        return named


if __name__ == "__main__":
    main(*sys.argv[1:])
