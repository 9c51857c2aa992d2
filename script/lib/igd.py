"""A router that opens ports when it is asked (UPnP's InternetGatewayDevice:1), as far as `script/nat` needs one.

    igd.py HOME NET DEVICE    addresses of the router inside and outside, and the device outside

Runs in the router's namespace, where a table `nat` with a chain `pre` stands. It answers searches on HOME and forwards
the ports that it is asked for from DEVICE to whoever asks.
"""

import re
import socket
import struct
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

HOME, NET, DEVICE = sys.argv[1:4]
GROUP, PORT = "239.255.255.250", 5000
SERVICE = "urn:schemas-upnp-org:service:WANIPConnection:1"
DESCRIPTION = f"""<?xml version="1.0"?>
<root xmlns="urn:schemas-upnp-org:device-1-0"><device>
<deviceType>urn:schemas-upnp-org:device:InternetGatewayDevice:1</deviceType>
<deviceList><device><deviceType>urn:schemas-upnp-org:device:WANDevice:1</deviceType>
<deviceList><device><deviceType>urn:schemas-upnp-org:device:WANConnectionDevice:1</deviceType>
<serviceList><service><serviceType>{SERVICE}</serviceType><controlURL>/control</controlURL>
<SCPDURL>/service.xml</SCPDURL></service></serviceList></device></deviceList></device></deviceList></device></root>"""
ACTION = """<scpd xmlns="urn:schemas-upnp-org:service-1-0"><actionList>{}</actionList></scpd>"""
ARGUMENTS = {
    "GetExternalIPAddress": [],
    "AddPortMapping": ["NewRemoteHost", "NewExternalPort", "NewProtocol", "NewInternalPort", "NewInternalClient",
                       "NewEnabled", "NewPortMappingDescription", "NewLeaseDuration"],
    "DeletePortMapping": ["NewRemoteHost", "NewExternalPort", "NewProtocol"],
}


def service():
    """What the service can do."""
    def action(name, arguments):
        listed = "".join(f"<argument><name>{argument}</name><direction>in</direction></argument>"
                         for argument in arguments)
        return f"<action><name>{name}</name><argumentList>{listed}</argumentList></action>"
    return ACTION.format("".join(action(*item) for item in ARGUMENTS.items()))


class Control(BaseHTTPRequestHandler):
    """Describes the router, and does what it is asked."""

    def answer(self, text):
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(service() if self.path == "/service.xml" else DESCRIPTION)

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        name = re.search(r"<\w+:(\w+) xmlns:\w+=.?" + SERVICE, asked)[1]
        given = dict(re.findall(r"<(New\w+)[^>]*>([^<]*)<", asked))
        if name == "AddPortMapping":
            to = f"{given['NewInternalClient']}:{int(given['NewInternalPort'])}"
            how = f"{given['NewProtocol'].lower()} dport {int(given['NewExternalPort'])}"
            subprocess.run(["nft", f"add rule ip nat pre iifname {DEVICE} {how} dnat to {to}"], check=True)
            print("opened", how, "to", to, flush=True)
        result = f"<NewExternalIPAddress>{NET}</NewExternalIPAddress>" if name == "GetExternalIPAddress" else ""
        self.answer(f"""<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"
            s:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/"><s:Body><u:{name}Response
            xmlns:u="{SERVICE}">{result}</u:{name}Response></s:Body></s:Envelope>""")


def found():
    """Answers whoever looks for a router."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listening.bind(("", 1900))
    member = struct.pack("4s4s", socket.inet_aton(GROUP), socket.inet_aton(HOME))
    listening.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    while True:
        asked, who = listening.recvfrom(2048)
        if asked.startswith(b"M-SEARCH"):
            listening.sendto(f"HTTP/1.1 200 OK\r\nCACHE-CONTROL: max-age=120\r\nEXT:\r\n"
                             f"LOCATION: http://{HOME}:{PORT}/description.xml\r\n"
                             f"ST: urn:schemas-upnp-org:device:InternetGatewayDevice:1\r\nUSN: uuid:1\r\n\r\n"
                             .encode(), who)


threading.Thread(target=found, daemon=True).start()
HTTPServer((HOME, PORT), Control).serve_forever()
