"""Export the small models by Optimum (TorchScript, task text-generation-with-past).

    export_optimum.py OUT [ARCHITECTURE ...]

Writes OUT/models/ARCHITECTURE__optimum/{model.onnx,config.json}; the weights are read from OUT/weights, where
export_dynamo.py leaves them. Runs in the environment of requirements-optimum.txt.
"""
import argparse
import os

from optimum.exporters.onnx import onnx_export_from_model

import small

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("architectures", nargs="*")
    a = parser.parse_args()
    for name in a.architectures or small.ARCHITECTURES:
        folder = os.path.join(a.out, "models", name + "__optimum")
        os.makedirs(folder, exist_ok=True)
        onnx_export_from_model(small.model(name, a.out), folder, task="text-generation-with-past", do_validation=False)
        print("wrote", os.path.join(folder, "model.onnx"))
