"""p4.tmp.P4DeviceConfig: the message in which controllers for BMv2 wrap a device config. No package on PyPI has it."""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FILE = descriptor_pb2.FileDescriptorProto(name="p4/tmp/p4config.proto", package="p4.tmp", syntax="proto3")
_MESSAGE = _FILE.message_type.add(name="P4DeviceConfig")
for _number, _name, _type in [(1, "reassign", "BOOL"), (3, "device_data", "BYTES")]:
    _MESSAGE.field.add(name=_name, number=_number, label=1,
                       type=descriptor_pb2.FieldDescriptorProto.Type.Value(f"TYPE_{_type}"))
_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_FILE)
P4DeviceConfig = message_factory.MessageFactory(_POOL).GetPrototype(
    _POOL.FindMessageTypeByName("p4.tmp.P4DeviceConfig"))
