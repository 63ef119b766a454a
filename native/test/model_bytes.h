// Just enough protobuf to write one-op ONNX models, valid or not.
#ifndef ROPE_TEST_MODEL_BYTES_H_
#define ROPE_TEST_MODEL_BYTES_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace rope::test {

class Message {
 public:
  Message& Int(int field, int64_t value) {
    Varint(static_cast<uint64_t>(field) << 3);
    Varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& Float(int field, float value) {
    Varint(static_cast<uint64_t>(field) << 3 | 5);
    char raw[4];
    memcpy(raw, &value, 4);
    bytes_.append(raw, 4);
    return *this;
  }
  Message& Bytes(int field, const std::string& value) {
    Varint(static_cast<uint64_t>(field) << 3 | 2);
    Varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& Sub(int field, const Message& value) { return Bytes(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

// One attribute, as AttributeProto.
inline Message Attribute(const std::string& name, int type) {
  return Message().Bytes(1, name).Int(20, type);
}
inline Message IntAttribute(const std::string& name, int64_t value) {
  return Attribute(name, 2).Int(3, value);
}
inline Message FloatAttribute(const std::string& name, float value) {
  return Attribute(name, 1).Float(2, value);
}
inline Message StringAttribute(const std::string& name, const std::string& value) {
  return Attribute(name, 3).Bytes(4, value);
}
inline Message FloatsAttribute(const std::string& name, const std::vector<float>& values) {
  Message m = Attribute(name, 6);
  for (const float v : values) m.Float(7, v);
  return m;
}
inline Message IntsAttribute(const std::string& name, const std::vector<int64_t>& values) {
  Message m = Attribute(name, 7);
  for (const int64_t v : values) m.Int(8, v);
  return m;
}

// A graph input or output: name, ONNX element type, rank (symbolic dimensions).
inline Message ValueInfo(const std::string& name, int element_type, int rank) {
  Message shape;
  for (int i = 0; i < rank; ++i) {
    shape.Sub(1, Message().Bytes(2, name + "_" + std::to_string(i)));
  }
  const Message tensor = Message().Int(1, element_type).Sub(2, shape);
  return Message().Bytes(1, name).Sub(2, Message().Sub(1, tensor));
}

// A model of one node, RotaryAttention unless said otherwise.
struct NodeModel {
  struct Value {
    std::string name;  // empty: left out
    int element_type;
    int rank;
  };
  std::string node_name = "layer.0/attention";
  std::string op = "RotaryAttention";
  std::string domain = "rope.rewrite";
  std::vector<Value> inputs, outputs;
  std::vector<Message> attributes;

  std::string Encode() const {
    Message node;
    for (const Value& v : inputs) node.Bytes(1, v.name);
    for (const Value& v : outputs) node.Bytes(2, v.name);
    node.Bytes(3, node_name).Bytes(4, op);
    for (const Message& a : attributes) node.Sub(5, a);
    node.Bytes(7, domain);
    Message graph;
    graph.Sub(1, node).Bytes(2, "g");
    for (const Value& v : inputs) {
      if (!v.name.empty()) graph.Sub(11, ValueInfo(v.name, v.element_type, v.rank));
    }
    for (const Value& v : outputs) {
      if (!v.name.empty()) graph.Sub(12, ValueInfo(v.name, v.element_type, v.rank));
    }
    return Message()
        .Int(1, 9)
        .Sub(7, graph)
        .Sub(8, Message().Bytes(1, "").Int(2, 18))
        .Sub(8, Message().Bytes(1, domain).Int(2, 1))
        .bytes();
  }
};

}  // namespace rope::test

#endif  // ROPE_TEST_MODEL_BYTES_H_
