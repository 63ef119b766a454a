"""Reads config.pbtxt files with the schema of tritonclient: triton_config.py FILE..."""
import sys

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

for path in sys.argv[1:]:
    with open(path) as f:
        config = text_format.Parse(f.read(), model_config_pb2.ModelConfig())
    print(f"pass  {config.name}: {len(config.input)} inputs, {len(config.output)} outputs, {config.backend}")
