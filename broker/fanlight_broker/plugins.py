"""What plug-ins import: the names here stay in their place from release to release; other modules may change.

    AuthenticationMethod, Exchange   enhanced authentication of MQTT 5: the setting `mqtt_authentication_methods`
    AuthenticationFailed             raised by a step of an exchange to refuse the client

docs/mqtt.md has an example.
"""

from fanlight_broker.core.errors import AuthenticationFailed
from fanlight_broker.protocols.mqtt.options import AuthenticationMethod, Exchange

__all__ = ["AuthenticationFailed", "AuthenticationMethod", "Exchange"]
