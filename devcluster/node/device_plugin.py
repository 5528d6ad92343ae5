"""A device plugin that tells kubelet of GPUs that do not exist: `FOLDER RESOURCE DEFINITIONS`.

The devices are read from `FOLDER/devices.json`, [{"id": UUID, "is_healthy": bool}], again when the file changes. A
container gets their ids in NVIDIA_VISIBLE_DEVICES, as from NVIDIA's plugin. kubelet forgets plugins when it starts
again and deletes their sockets: then the plugin ends, and is started again.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]

SOCKETS = Path("/var/lib/kubelet/device-plugins")
LOOK_EVERY_S = 0.2


def serve(folder: Path, resource: str, definitions: Path) -> None:
    """`definitions`: the folder with kubelet's api.proto."""
    sys.path.append(str(definitions))
    messages, services = grpc.protos_and_services("api.proto")
    # kubelet deletes all sockets of plugins before it opens its own.
    while not (SOCKETS / "kubelet.sock").exists():
        time.sleep(LOOK_EVERY_S)
    socket = SOCKETS / f"{resource.replace('/', '_')}.sock"
    socket.unlink(missing_ok=True)

    class Plugin(services.DevicePluginServicer):  # type: ignore[name-defined]
        def GetDevicePluginOptions(self, request: Any, context: Any) -> Any:
            return messages.DevicePluginOptions()

        def ListAndWatch(self, request: Any, context: Any) -> Iterator[Any]:
            told = None
            while context.is_active():
                devices = json.loads((folder / "devices.json").read_text())
                if devices != told:
                    yield messages.ListAndWatchResponse(devices=[_device(messages, one) for one in devices])
                    told = devices
                time.sleep(LOOK_EVERY_S)

        def Allocate(self, request: Any, context: Any) -> Any:
            return messages.AllocateResponse(
                container_responses=[
                    messages.ContainerAllocateResponse(envs={"NVIDIA_VISIBLE_DEVICES": ",".join(one.devices_ids)})
                    for one in request.container_requests
                ]
            )

    server = grpc.server(ThreadPoolExecutor(max_workers=4))
    services.add_DevicePluginServicer_to_server(Plugin(), server)
    server.add_insecure_port(f"unix://{socket}")
    server.start()
    _register(messages, services, socket.name, resource)
    while socket.exists():
        time.sleep(LOOK_EVERY_S)
    server.stop(grace=None)


def _device(messages: Any, one: dict[str, Any]) -> Any:
    return messages.Device(ID=one["id"], health="Healthy" if one["is_healthy"] else "Unhealthy")


def _register(messages: Any, services: Any, endpoint: str, resource: str) -> None:
    with grpc.insecure_channel(f"unix://{SOCKETS}/kubelet.sock") as channel:
        request = messages.RegisterRequest(version="v1beta1", endpoint=endpoint, resource_name=resource)
        services.RegistrationStub(channel).Register(request, timeout=30, wait_for_ready=True)


if __name__ == "__main__":
    while True:
        serve(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
