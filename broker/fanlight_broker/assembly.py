"""The assembly: which parts and which protocols a broker process has. The only place that knows all of them.

To add a protocol, make its folder in protocols/ (core/protocol_part.py says what it brings), name its part in PROTOCOLS
and its settings among the bases of config.Settings. To add anything else that opens, starts and stops: a Part, and a
line in `assemble`.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from fanlight_broker.administration import Administration
from fanlight_broker.archiving import Archiving
from fanlight_broker.audit_trail import AuditTrail
from fanlight_broker.auditing import Auditing
from fanlight_broker.authentication import Authentication
from fanlight_broker.bridging.part import Bridging
from fanlight_broker.config import Settings
from fanlight_broker.core.protocol_part import ProtocolPart
from fanlight_broker.core_part import Core
from fanlight_broker.encryption import Encryption
from fanlight_broker.in_memory import InMemory
from fanlight_broker.inspecting import Inspecting
from fanlight_broker.listeners import Listeners
from fanlight_broker.measuring import Measuring
from fanlight_broker.parts import Parts
from fanlight_broker.permitting.part import Permitting
from fanlight_broker.permitting.quota_part import QuotaPart
from fanlight_broker.protocols.amqp.part import AmqpPart
from fanlight_broker.protocols.mqtt.part import MqttPart
from fanlight_broker.protocols.native.part import NativePart
from fanlight_broker.ruling.part import Ruling
from fanlight_broker.tracing.part import Tracing

if TYPE_CHECKING:
    from fanlight_broker.storing import Storing

PROTOCOLS: Final[tuple[type[ProtocolPart], ...]] = (
    NativePart,
    MqttPart,
    AmqpPart,
)


class Assembly(NamedTuple):
    parts: Parts
    summary: Callable[[], Mapping[str, int]]  # what the log says at the end


def assemble(settings: Settings) -> Assembly:
    """The parts of a broker, none of them open yet. To be called in its event loop.

    They are opened and started in this order, and stopped in reverse: clients are let in when all that serves them
    works, and the archive is closed when no client is left.
    """
    auditing = Auditing(settings)
    authentication, encryption, core = Authentication(settings), Encryption(settings), Core(settings)
    archiving = Archiving(settings, core)
    storing = store_part(settings, core)
    permitting, ruling, quotas = Permitting(settings, core), Ruling(settings, core), QuotaPart(settings, core)
    bridging, trail = Bridging(settings, core), AuditTrail(settings, core)
    listeners = Listeners(settings, PROTOCOLS, core, authentication, encryption)
    listeners.handover.followers.append(bridging.follow)
    inspecting = Inspecting(settings, core, listeners, archiving, storing, lambda: parts.ready)
    administration = Administration(
        settings, core, authentication, encryption, listeners, inspecting, lambda: parts.metrics(),
        lambda: parts.actions(), lambda: parts.views(), of_pages=PROTOCOLS[0],
    )
    parts = Parts([
        auditing, authentication, encryption, core, Tracing(settings, core), archiving, storing, trail, permitting,
        quotas, ruling, bridging, listeners, inspecting, Measuring(), administration,
    ])
    return Assembly(parts, inspecting.summary)


def store_part(settings: Settings, core: Core) -> "Storing | InMemory":
    if settings.data is None:
        return InMemory()
    from fanlight_broker.storing import Storing  # here: the store is 5 MB of modules

    return Storing(settings, settings.data, core, [format for each in PROTOCOLS for format in each.formats])
